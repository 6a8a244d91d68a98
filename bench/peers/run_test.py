#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/peers/run in its tiniest form: what it must print and write, and that it leaves nothing.

  run_test.py BUILD          exit code 77 where there is nothing to measure with

Says nothing about speed. The last line is `N passed, N failed, N skipped`.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import contestants  # noqa: E402
import places  # noqa: E402
import table  # noqa: E402

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


def measuring(process):
    """The process of weft_ncclnet that it has started, once it has."""
    children = "/proc/%d/task/%d/children" % (process.pid, process.pid)
    deadline = time.monotonic() + TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
        try:
            with open(children, encoding="ascii") as file:
                for pid in file.read().split():
                    with open("/proc/%s/cmdline" % pid, encoding="utf-8", errors="replace") as words:
                        if "stream" in words.read().split("\0"):
                            return int(pid)
        except OSError:
            pass
    raise AssertionError("it never started to measure")


def check_signal(build, _folder):
    """Ended in the middle, kill -9 included, it leaves neither processes nor namespaces."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = start("-C", build, "--rounds", "9", "--seconds", "30", "--only", "loopback")
        pid = measuring(process)
        process.send_signal(number)
        code, out, err = finish(process)
        assert code == (-number if number == signal.SIGKILL else 128 + number), "exit %d\n%s%s" % (
            code, out, err)
        deadline = time.monotonic() + TIMEOUT_S
        while number == signal.SIGKILL and time.monotonic() < deadline and (
                traces_of(process) or os.path.exists("/proc/%d" % pid)):
            time.sleep(0.05)  # somebody else cleans up
        assert not traces_of(process), traces_of(process)
        assert not os.path.exists("/proc/%d" % pid), "process %d is left" % pid


def check_usage(build, folder):
    """What is not understood, and a file that cannot be written, is refused at once, with words."""
    for words, said in ((["--only", "moon"], "loopback,veth1500,veth9000"), (["--only", ""], "the places"),
                        (["--rounds", "0"], "from 1"), (["--rounds", "x"], "from 1"),
                        (["--seconds", "0"], "above 0"), (["--seconds", "nan"], "above 0"),
                        (["--seconds", "x"], "above 0"), (["--bytes", "4X"], "256K"),
                        (["--bytes", ""], "256K"), (["--bytes", "2G"], "at most 1G"),
                        (["--json", folder], "name of a file"), (["--json", ""], "name of a file"),
                        (["--json", folder + "/absent/x"], "no folder"),
                        (["--markdown", folder + "/absent/x"], "no folder"),
                        (["--plugin", folder + "/absent.so"], "no such file")):
        code, _, err = finish(start("-C", build, *words))
        assert code == 2 and said in err, "%s: exit %d: %s" % (words, code, err)
    code, out, _ = finish(start("-C", "/no/such/build", "--only", "loopback"))
    assert code == 77 and "not built" in out and "./quickstart" in out, "exit %d: %s" % (code, out)


def check_help(_build, _folder):
    """Everyone who is measured is in the help under the name that the tables have."""
    code, out, err = finish(start("--help"))
    assert code == 0, err
    options = argparse.Namespace(build="", plugin=None, bytes="4M", message_bytes=4 << 20)
    for one in contestants.everyone(options):
        assert one.title in out, "%s is not in the help:\n%s" % (one.title, out)


def check_what_is_not_built(_build, folder):
    """The words say which command builds what is missing, and nobody else's name is given."""
    open(os.path.join(folder, "build.ninja"), "w", encoding="ascii").close()
    options = argparse.Namespace(build=folder, plugin=None, bytes="4M", message_bytes=4 << 20)
    for one in (contestants.Weft(options), contestants.RawUdp(options), contestants.PlainTcp(options)):
        said = one.missing()
        assert said.endswith("ninja -C %s peers" % os.path.relpath(folder)), said


def check_failures_in_words(_build, _folder):
    """What iperf3 says went wrong is shown, whatever its exit code."""
    fine, wrong = '{"end": {"sum_received": {"bytes": 1}}}', '{"end": {}, "error": "no such luck"}'
    assert contestants.Iperf.read(fine) == {"bytes": 1}
    here = places.Place("loopback", None, None, "127.0.0.1", "lo", 65536)
    for call in (lambda: contestants.Iperf.read(wrong),
                 lambda: places.Process(here.near, ["sh", "-c", "echo '%s'; exit 1" % wrong], 60).finish()):
        try:
            call()
        except places.Failed as error:
            assert "no such luck" in str(error) and "{" not in str(error), error
        else:
            raise AssertionError("it did not fail")


def check_goals(_build, _folder):
    """TCP's best is the better of its one and four streams, and nobody else's."""
    def one(key, gbps, p50):
        return {"key": key, "goodput_bps": gbps and gbps * 1e9, "p50_us": p50}
    entry = {"name": "here", "contestants": [
        one("weft", 10, 12), one("raw_udp", 20, 5), one("tcp_1", 4, None), one("tcp_4", 8, None),
        one("tcp_ping_pong", None, 6), one("ucx_tcp", 40, 10)]}
    assert [goal["ratio"] for goal in table.goals(entry)] == [0.5, 1.25, 1.2], table.goals(entry)
    assert [goal["met"] for goal in table.goals(entry)] == [False, True, True], table.goals(entry)


def main():
    failed = 0
    checks = (check_tiny, check_signal, check_usage, check_help, check_what_is_not_built,
              check_failures_in_words, check_goals)
    for check in checks:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(sys.argv[1], folder)
                print("passed: %s: %s" % (check.__name__, check.__doc__))
            except (AssertionError, OSError, LookupError, ValueError) as error:
                failed += 1
                print("FAILED: %s: %s\n%s" % (check.__name__, check.__doc__, error))
    print("%d passed, %d failed, 0 skipped" % (len(checks) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
