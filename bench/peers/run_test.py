#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/peers/run in its tiniest form: what it must print and write, and that it leaves nothing.

  run_test.py BUILD          exit code 77 where there is nothing to measure with

Says nothing about speed. The last line is `N passed, N failed, N skipped`.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "run")
TIMEOUT_S = 120


def start(*words):
    return subprocess.Popen([RUN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    finally:
        if process.poll() is None:
            process.kill()
    return process.returncode, out, err


def traces_of(process):
    """Namespaces named after the process, and processes of its that are left."""
    left = [name for name in os.listdir("/run/netns") if name.startswith("weft-%d-" % process.pid)] \
        if os.path.isdir("/run/netns") else []
    return left


def check_tiny(build, folder):
    """One round at one place: every contestant that is there has figures, and so says each format."""
    files = [os.path.join(folder, name) for name in ("result.json", "result.md")]
    process = start("-C", build, "--rounds", "1", "--seconds", "0.2", "--bytes", "256K", "--only", "loopback",
                    "--json", files[0], "--markdown", files[1])
    code, out, err = finish(process)
    if code == 77:
        print(out)
        sys.exit(77)
    assert code == 0, "exit %d\n%s%s" % (code, out, err)
    with open(files[0], encoding="utf-8") as file:
        result = json.load(file)
    place, = result["places"]
    figures = {one["key"]: one for one in place["contestants"]}
    for key, names in (("weft", ("goodput_bps", "cpu_s_per_gb", "p50_us")),
                       ("raw_udp", ("goodput_bps", "cpu_s_per_gb", "p50_us")),
                       ("tcp_ping_pong", ("p50_us",))):
        for name in names:
            assert figures[key][name] and figures[key][name] > 0, "%s of %s: %s\n%s" % (
                name, key, figures[key][name], out + err)
    with open(files[1], encoding="utf-8") as file:
        readme = file.read()
    for one in place["contestants"]:
        assert re.search(r"^  %s +(\S+ +){2}\S+$" % re.escape(one["title"]), out, re.M), out
        assert "| %s |" % one["title"] in readme, readme
    goals = out.strip().splitlines()[-3:]
    for line, goal in zip(goals, result["goals"]):
        assert re.fullmatch(r"loopback: .*: (\d+\.\d\d|-), goal at (least|most) \d\.\d: "
                            r"(met|not met|not measured)", line), line
        if goal["ratio"] is not None:
            kept = goal["ratio"] >= goal["goal"] if goal["at_least"] else goal["ratio"] <= goal["goal"]
            assert kept == goal["met"], goal
    assert place["datagram"] > 64 and (place["datagram"] - 64) % 128 == 0, place["datagram"]
    assert not traces_of(process), traces_of(process)


def check_signal(build, _folder):
    """Ended in the middle, it leaves neither processes nor namespaces."""
    process = start("-C", build, "--rounds", "9", "--seconds", "30", "--only", "loopback")
    children = "/proc/%d/task/%d/children" % (process.pid, process.pid)
    pids = []
    deadline = time.monotonic() + TIMEOUT_S
    while not pids and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
        try:
            with open(children, encoding="ascii") as file:
                for pid in file.read().split():
                    with open("/proc/%s/cmdline" % pid, encoding="utf-8", errors="replace") as words:
                        pids += [int(pid)] if "stream" in words.read().split("\0") else []
        except OSError:
            pass
    assert pids, "it never started to measure"
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert code == 128 + signal.SIGTERM, "exit %d\n%s%s" % (code, out, err)
    assert not traces_of(process), traces_of(process)
    assert not os.path.exists("/proc/%d" % pids[0]), "process %d is left" % pids[0]


def check_usage(build, _folder):
    """What is not understood is refused, with words."""
    for words, said in ((["--only", "moon"], "loopback,veth1500,veth9000"), (["--rounds", "0"], "from 1"),
                        (["--seconds", "0"], "above 0"), (["--bytes", "4X"], "256K")):
        code, _, err = finish(start("-C", build, *words))
        assert code == 2 and said in err, "%s: exit %d: %s" % (words, code, err)
    code, out, _ = finish(start("-C", "/no/such/build", "--only", "loopback"))
    assert code == 77 and "not built" in out, "exit %d: %s" % (code, out)


def main():
    failed = 0
    checks = (check_tiny, check_signal, check_usage)
    for check in checks:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(sys.argv[1], folder)
                print("passed: %s: %s" % (check.__name__, check.__doc__))
            except AssertionError as error:
                failed += 1
                print("FAILED: %s: %s\n%s" % (check.__name__, check.__doc__, error))
    print("%d passed, %d failed, 0 skipped" % (len(checks) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
