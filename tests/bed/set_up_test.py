#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Set-up over a network that is partly dead: before the job, and while it lasts.

A spine that is killed swallows those flows whose hash leads there, TCP's and the size probes' as well
as data. Flows are opened by bed_flows (flows.cc), which keeps two endpoints in one process.
"""
import contextlib
import os
import select
import subprocess
import sys

sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import Case, Failed, Skipped  # noqa: E402

FLOWS = os.path.join("..", "tests", "bed", "bed_flows")  # from where the tool was built
ONE, TWO = "10.88.1.1", "10.88.2.1"
STARTS = 4
SET_UP_MS = 1500        # for what takes a few hundred; without a mend it is the peer time-out of 10 s
FULL_PACKET = 1300      # bytes, on average: the smallest that could be concluded is 1152
LEAST = 0.85             # of what the links carry that live
PATIENCE_S = 30


class Flows:
    """A running bed_flows."""

    def __init__(self, run):
        program = os.path.normpath(os.path.join(os.path.dirname(run.options.tool), FLOWS))
        if not os.access(program, os.X_OK):
            raise Skipped("no bed_flows at %s: build it beside the tool" % program)
        self._run = run
        self._process = subprocess.Popen([program, run.h1, ONE, run.h2, TWO], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(self, command):
        """What it answers: a dictionary of numbers."""
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], PATIENCE_S)[0]:
            raise Failed("bed_flows does not answer to %s" % command)
        line = self._process.stdout.readline().strip()
        if not line.startswith("ms="):
            raise Failed("%s: %s" % (command, line or "bed_flows has ended"))
        return {key: float(value) for key, value in (word.split("=") for word in line.split())}

    def stream_spines(self):
        """The spines that carry the out-of-band stream there and back."""
        said = in_namespace(self._run.h1, "ss", "-Htn", "state", "established", "dst", TWO).split("\n")
        ports = [tuple(int(word.rsplit(":", 1)[1]) for word in line.split()[2:4])
                 for line in said if line.strip()]
        if len(ports) != 1:
            raise Failed("there are %d streams: %s" % (len(ports), said))
        near, far = ports[0]
        return (spine_of(self._run.h1, ONE, TWO, near, far), spine_of(self._run.h2, TWO, ONE, far, near))

    def end(self):
        self._process.kill()
        self._process.communicate()


def in_namespace(name, *words):
    return subprocess.run(["ip", "netns", "exec", name, *words], capture_output=True, text=True,
                          check=True, timeout=30).stdout


def spine_of(name, source, target, source_port, target_port):
    said = in_namespace(name, "ip", "route", "get", target, "from", source, "ipproto", "tcp", "sport",
                        str(source_port), "dport", str(target_port)).split()
    return int(said[said.index("dev") + 1][1:])


@contextlib.contextmanager
def flows_of(run):
    flows = Flows(run)
    try:
        yield flows
    finally:
        flows.end()


def start_with(run, dead):
    """Jobs begun when so many spines have died; which, the seed says."""
    with run.bed():
        for i in range(dead):
            run.spines("kill", (run.seed + i) % run.spine_count + 1)
        took, packets = [], []
        for _ in range(STARTS):
            with flows_of(run) as flows:
                took.append(flows.say("open")["ms"])
                packets.append(flows.say("transfer")["packet"])
        run.note(set_up_ms="/".join("%.0f" % ms for ms in took))
        run.check("slowest_ms", max(took), high=SET_UP_MS)
        run.check("smallest_packet", min(packets), low=FULL_PACKET)
        result = run.stream().result()
        run.note_result(result)
        return result.mbps / (run.all_links * (run.spine_count - dead) / run.spine_count)


def half_dead(run):
    run.check("of_what_lives", start_with(run, 2), low=LEAST)


def three_dead(run):
    run.check("of_what_lives", start_with(run, 3), low=LEAST)


@contextlib.contextmanager
def living_pair(run):
    """A bed, a connection on it, and the spines that its stream takes."""
    with run.bed(), flows_of(run) as flows:
        flows.say("open")
        flows.say("transfer")
        there, back = flows.stream_spines()
        run.note(stream="%d/%d" % (there, back))
        yield flows, there, back


def judge(run, flows, answers):
    """New flows came soon, over the connection that was there, on which the first flow goes on."""
    run.note(ms="/".join("%.0f" % answer["ms"] for answer in answers))
    run.check("slowest_ms", max(answer["ms"] for answer in answers), high=SET_UP_MS)
    flows.say("transfer")
    last = flows.say("facts")
    run.check("connections", last["connections"], low=1, high=1)
    run.check("intruders", last["intruders"], high=0)


def dies_there(run):
    with living_pair(run) as (flows, there, _):
        run.spines("kill", there)
        judge(run, flows, [flows.say("open") for _ in range(3)])


def dies_back(run):
    with living_pair(run) as (flows, _, back):
        run.spines("kill", back)
        judge(run, flows, [flows.say("open") for _ in range(3)])


def dies_while_waiting(run):
    """The request has arrived and nobody has accepted it yet: only its answer meets the dead way."""
    with living_pair(run) as (flows, _, back):
        flows.say("ask")
        harness.time.sleep(0.3)
        run.spines("kill", back)
        judge(run, flows, [flows.say("accept"), flows.say("open")])


def dies_and_both_want(run):
    with living_pair(run) as (flows, there, _):
        run.spines("kill", there)
        judge(run, flows, [flows.say("both"), flows.say("back"), flows.say("both")])


def three_die(run):
    with living_pair(run) as (flows, there, back):
        spared = next(k for k in range(run.spine_count, 0, -1) if k not in (there, back))
        for k in range(1, run.spine_count + 1):
            if k != spared:
                run.spines("kill", k)
        judge(run, flows, [flows.say("open") for _ in range(3)])


SOON = "within %g s" % (SET_UP_MS / 1000)
CASES = [
    Case("half_dead", "with 2 of 4 spines dead %d jobs start %s, and at %g of what lives" %
         (STARTS, SOON, LEAST), half_dead, ci_seeds=2),
    Case("three_dead", "with 3 of 4 spines dead %d jobs start %s, and at %g of what lives" %
         (STARTS, SOON, LEAST), three_dead, ci_seeds=2),
    Case("dies_there", "the stream's spine dies: new flows come %s over the same connection" % SOON,
         dies_there, ci_seeds=2),
    Case("dies_back", "the spine of its way back dies: the same", dies_back, ci_seeds=2),
    Case("dies_while_waiting", "it dies while a flow waits to be accepted: the same",
         dies_while_waiting, ci_seeds=2),
    Case("dies_and_both_want", "it dies and both ends want a flow at once: the same",
         dies_and_both_want, ci_seeds=2),
    Case("three_die", "all spines but one die, the stream's among them: the same", three_die,
         ci_seeds=2),
]

if __name__ == "__main__":
    sys.exit(harness.run_cases(__doc__, CASES))
