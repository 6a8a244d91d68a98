# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios on the bed: what all files *_test.py that hold some share.

A file has a table of cases: a name, what must hold, how many hash seeds CI runs, and a function that
gets a Run, uses it, and states checks. Each case and seed is one line with what was measured, and a
failure is followed by the command that runs it again. A case may be tried again where `tries` says
so: the machine is shared, its noise only ever makes figures worse, and every try is printed. The last
line is `N passed, N failed, N skipped`; exit code 77 where no bed can be built.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import sampler  # noqa: E402
from command_line import within, wrong  # noqa: E402

SPINES = os.path.join(HERE, "spines")
TOP = os.path.dirname(os.path.dirname(HERE))
# Taken out: it is no setting of the library, which would warn of it.
DEFAULT_TOOL = os.environ.pop("WEFT_NCCLNET", None) or os.path.join(TOP, "build", "tools", "weft_ncclnet")
LINK_MBPS = 200
# A packet of 11 whole lines of 128 bytes is 1514 on the wire: 744 Mbit/s over four links.
PAYLOAD = 1408 / 1514
RUN_TIMEOUT_S = 60
MOST_SECONDS = RUN_TIMEOUT_S - 20  # of a stream: some cases add a few, and set-up takes its time


class Failed(Exception):
    """The scenario could not be carried through."""


class Skipped(Exception):
    """The scenario does not apply here; the words say why."""


@dataclasses.dataclass
class Case:
    name: str
    what: str
    run: typing.Callable
    ci_seeds: int = 1


@dataclasses.dataclass
class Result:
    """What one run of weft_ncclnet said."""
    code: int
    last_line: str
    figures: dict

    @property
    def mbps(self):
        return self.figures.get("goodput_bps", 0) / 1e6


class Job:
    """weft_ncclnet, running between the two hosts. What it says goes to a file in memory, of which
    nothing is left however we end."""

    def __init__(self, run, words, env):
        self._json = open(os.memfd_create("weft-bed-json"), encoding="utf-8")
        command = [run.options.tool, *words, "--ranks-in", "%s,%s" % (run.h1, run.h2),
                   "--timeout", str(RUN_TIMEOUT_S), "--quiet", "--json", "/proc/self/fd/%d" % self._json.fileno()]
        if run.options.plugin:
            command += ["--plugin", run.options.plugin]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            pass_fds=[self._json.fileno()], env={**os.environ, "WEFT_IFNAME": "host0", **env})

    def result(self):
        try:
            output, _ = self._process.communicate(timeout=RUN_TIMEOUT_S + 10)
        except subprocess.TimeoutExpired as error:
            self.end()
            raise Failed("weft_ncclnet did not end") from error
        lines = output.strip().splitlines() or ["(no output)"]
        if self._process.returncode != 0:
            warned = [line for line in lines[:-1] if "plugin WARN" in line][:1]  # says why, if any does
            raise Failed("weft_ncclnet ended with %d: %s" % (
                self._process.returncode, "; ".join(lines[-1:] + warned)))
        try:
            self._json.seek(0)
            figures = json.load(self._json)
        except ValueError as error:
            raise Failed("weft_ncclnet wrote no JSON: %s" % error) from error
        return Result(self._process.returncode, lines[-1], figures)

    def running(self):
        return self._process.poll() is None

    def end(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        self._json.close()


class Run:
    """One case with one seed: its bed, its jobs, its checks."""

    def __init__(self, options, seed):
        self.options, self.seed = options, seed
        self.figures, self.checks = [], []
        self.spine_count = 0
        self.h1 = self.h2 = ""
        self._jobs = []

    @contextlib.contextmanager
    def bed(self, spines=4, rate="%dmbit" % LINK_MBPS, mtu=1500):
        said = self.spines("up", "--spines", spines, "--rate", rate, "--mtu", mtu, "--seed", self.seed)
        names = dict(word.split("=", 1) for word in said.split())
        self.h1, self.h2, self.spine_count = names["h1"], names["h2"], spines
        try:
            yield
        finally:
            for job in self._jobs:
                job.end()
            self.spines("down")

    @property
    def all_links(self):
        """Mbit/s of payload that the four links carry."""
        return self.spine_count * LINK_MBPS * PAYLOAD

    def spines(self, *words):
        command = [SPINES, *map(str, words), "--owner", str(os.getpid())]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode == 77:
            raise Skipped(done.stderr.strip())
        if done.returncode != 0:
            raise Failed(done.stderr.strip())
        return done.stdout

    def counters(self):
        return {key: int(value) for key, value in
                (word.split("=") for word in self.spines("counters").split())}

    def start(self, *words, **env):
        job = Job(self, list(map(str, words)), {key: str(value) for key, value in env.items()})
        self._jobs.append(job)
        return job

    def stream(self, seconds=None, **env):
        return self.start("stream", "--bytes", "1M", "--seconds", seconds or self.options.seconds, **env)

    def sampler(self):
        return sampler.Sampler(self.h1, self.h2, self.spine_count)

    def watched_stream(self, **env):
        """A stream, its figures noted, and what the sampler saw of it."""
        with self.sampler() as seen:
            result = self.stream(**env).result()
        self.note_result(result)
        total = max(1, sum(seen.sent_by_spine))
        self.note(shares="/".join("%.0f%%" % (100 * sent / total) for sent in seen.sent_by_spine))
        return result, seen

    def note(self, **figures):
        self.figures += ["%s=%s" % (key, "%.3g" % value if isinstance(value, float) else value)
                         for key, value in figures.items()]

    def check(self, name, value, low=None, high=None):
        good = (low is None or value >= low) and (high is None or value <= high)
        want = " ".join(([">= %g" % low] if low is not None else []) +
                        (["<= %g" % high] if high is not None else []))
        self.checks.append(good)
        self.figures.append("%s=%.3f (%s%s)" % (name, value, "" if good else "NOT ", want))

    def note_result(self, result):
        self.note(mbps="%.0f" % result.mbps, paths=len([p for p in result.figures.get("paths") or []
                                                        if p["bytes"] > 0]),
                  retransmitted=result.figures.get("retransmitted"), **self.counters())


def sleep_until(when):
    time.sleep(max(0.0, when - time.monotonic()))


def end_on_signals():
    """So that what is under way is taken down; kill -9 leaves that to the bed's watcher."""
    def leave(number, _frame):
        sys.exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def stream_seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.1 <= value <= MOST_SECONDS:  # nor a NaN
        raise wrong(text, "a number from 0.1 to %d" % MOST_SECONDS)
    return value


def program(text):
    if not os.path.isfile(text) or not os.access(text, os.X_OK):
        raise wrong(text, "no such program; build it: ninja -C build tools/weft_ncclnet")
    return text


def plugin(text):
    if not os.path.isfile(text) or not os.access(text, os.R_OK):
        raise wrong(text, "no such file, or not readable")
    return text


def add_tool(parser):
    """--tool and --plugin."""
    parser.add_argument("--tool", type=program, metavar="PROGRAM",
                        help="default: %s" % os.path.relpath(DEFAULT_TOOL))
    parser.add_argument("--plugin", type=plugin, metavar="FILE", help="default: the tool's own")


def find_tool(options):
    """Whether there is one to run; says so if not."""
    options.tool = options.tool or DEFAULT_TOOL
    if os.access(options.tool, os.X_OK):
        return True
    print("no weft_ncclnet at %s: build it, or name one with --tool" % options.tool)
    return False


def parse(description, cases):
    parser = argparse.ArgumentParser(
        description=description, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="cases:\n" + "\n".join("  %-18s %s" % (case.name, case.what) for case in cases))
    parser.add_argument("--only", metavar="CASE,...", help="cases, with commas between them")
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument("--seeds", type=within(1, 10000), metavar="N",
                       help="run hash seeds 1 to N of every case")
    seeds.add_argument("--seed", type=within(0, 1 << 30), metavar="N", help="run this hash seed alone")
    parser.add_argument("--seconds", type=stream_seconds, default=2.5, metavar="S",
                        help="of a stream (%(default)s)")
    parser.add_argument("--tries", type=within(1, 100), default=1, metavar="N",
                        help="times until a case passes (%(default)s)")
    add_tool(parser)
    options = parser.parse_args()
    known = {case.name for case in cases}
    options.chosen = options.only.split(",") if options.only is not None else None
    for name in options.chosen or []:
        if name not in known:
            parser.error("--only: no case %r; there are %s" % (name, ", ".join(sorted(known))))
    return options


def run_once(case, options, seed):
    """'ok', 'FAIL' or 'skip', and what to say."""
    run = Run(options, seed)
    try:
        case.run(run)
    except Skipped as skipped:
        return "skip", str(skipped)
    except Failed as failed:
        return "FAIL", " ".join(run.figures + [str(failed)])
    if not run.checks:
        return "FAIL", "nothing was checked"
    return "ok" if all(run.checks) else "FAIL", " ".join(run.figures)


def run_cases(description, cases):
    options = parse(description, cases)
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    if not find_tool(options):
        return 77
    end_on_signals()
    for case in cases:
        if options.chosen is not None and case.name not in options.chosen:
            continue
        for seed in [options.seed] if options.seed is not None else range(
                1, (options.seeds or case.ci_seeds) + 1):
            for _ in range(options.tries):
                verdict, words = run_once(case, options, seed)
                print("%-5s %s seed=%d %s" % (verdict, case.name, seed, words), flush=True)
                if verdict != "FAIL":
                    break
            counts[verdict] += 1
            if verdict == "FAIL":
                print("      what must hold: %s" % case.what)
                program = os.path.relpath(sys.argv[0])
                print("      again: %s --only %s --seed %d --tool %s" % (
                    program if "/" in program else "./" + program, case.name, seed,
                    os.path.relpath(options.tool)))
    print("%d passed, %d failed, %d skipped" % (counts["ok"], counts["FAIL"], counts["skip"]))
    if counts["FAIL"]:
        return 1
    return 0 if counts["ok"] else 77
