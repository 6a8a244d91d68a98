#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four spines of 200 Mbit/s: what many paths carry, what one does, and a spine that dies."""
import sys

sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import Case, Failed  # noqa: E402

ALL = 0.92          # of what four links carry
QUARTER = (0.85, 1.06)  # of what one link carries
DEAD = 0.88         # of what three links carry, stall included
RETURNED = 0.92     # of the speed before the kill
STALL_MS = 200      # no progress to speak of: under a tenth of three links
DEAD_SPINE = 2
DEAD_AT_START = 0.75  # of what three links carry: a short job, begun with eight dead paths of 32
STARTS = 5


def many_paths(run):
    with run.bed():
        result, _ = run.watched_stream()
        run.check("ratio", result.mbps / run.all_links, low=ALL)


def many_paths_ipv6(run):
    with run.bed():
        result, _ = run.watched_stream(NCCL_SOCKET_FAMILY="AF_INET6")
        run.check("ipv6_datagrams", harness.sampler.udp6_datagrams(run.h1), low=1000)
        run.check("ratio", result.mbps / run.all_links, low=ALL)


def one_path(run):
    with run.bed():
        result = run.stream(WEFT_PATHS=1).result()
        run.note_result(result)
        run.check("of_one_link", result.mbps / (run.all_links / 4), *QUARTER)


def killed_run(run, seconds, kill_s, revive_s=None):
    """A stream in which a spine dies; the sampler, the result, and when what happened."""
    with run.sampler() as seen:
        job = run.stream(seconds)
        begin = seen.wait_for_traffic()
        if begin is None:
            job.result()
            raise Failed("no traffic was seen")
        harness.sleep_until(begin + kill_s)
        run.spines("kill", DEAD_SPINE)
        killed = harness.time.monotonic()
        revived = None
        if revive_s is not None:
            harness.sleep_until(begin + revive_s)
            run.spines("revive", DEAD_SPINE)
            revived = harness.time.monotonic()
        result = job.result()
    run.note_result(result)
    return seen, result, begin, killed, revived


def spine_killed(run):
    with run.bed():
        seen, result, begin, killed, _ = killed_run(run, run.options.seconds + 1.5, 1.2)
        end = seen.last_traffic()
        before = seen.rate(begin + 0.3, killed - 0.1)
        # What was verified, shared out by what crossed the wire before and after.
        share = (seen.bytes_at(end) - seen.bytes_at(killed)) / (seen.bytes_at(end) - seen.samples[0][1])
        after_mbps = share * result.figures["bytes"] * 8e-6 / (end - killed)
        stall = seen.longest_below(0.1 * 0.75 * before, killed - 0.1, min(end, killed + 2))
        slow = seen.longest_below(0.5 * 0.75 * before, killed - 0.1, min(end, killed + 2))
        run.note(after_mbps="%.0f" % after_mbps, under_half_ms="%.0f" % (slow * 1e3))
        run.check("stall_ms", stall * 1e3, high=STALL_MS)
        run.check("ratio_of_three", after_mbps / (run.all_links * 3 / 4), low=DEAD)


def spine_revived(run):
    with run.bed():
        seen, _, begin, killed, revived = killed_run(run, run.options.seconds + 3.0, 1.4, 2.6)
        end = seen.last_traffic()
        before = seen.rate(begin + 0.4, killed - 0.1)
        back = seen.first_above(0.9 * before, revived, end)
        run.note(dead_ratio="%.2f" % (seen.rate(killed + 0.3, revived - 0.1) / before),
                 back_ms="never" if back is None else "%.0f" % (back * 1e3))
        run.check("speed_after_revive", seen.rate(revived + 1.0, end - 0.1) / before, low=RETURNED)


def dead_at_start(run):
    """Set-up has to find its way too: TCP and the search for the packet size know one way each."""
    with run.bed():
        run.spines("kill", DEAD_SPINE)
        results = [run.stream(1.2).result() for _ in range(STARTS)]
        run.note(mbps="/".join("%.0f" % result.mbps for result in results))
        run.check("ratio_of_three", min(result.mbps for result in results) / (run.all_links * 3 / 4),
                  low=DEAD_AT_START)


CASES = [
    Case("many_paths", "at least %g of 744 Mbit/s of payload" % ALL, many_paths, ci_seeds=5),
    Case("many_paths_ipv6", "the same over IPv6", many_paths_ipv6),
    Case("one_path", "with WEFT_PATHS=1 about a quarter of it", one_path),
    Case("spine_killed", "at least %g of three links after the kill, no stall over %d ms" %
         (DEAD, STALL_MS), spine_killed),
    Case("dead_at_start", "%d jobs in a row start over a dead spine, each at least at %g of three links" %
         (STARTS, DEAD_AT_START), dead_at_start),
    Case("spine_revived", "at least %g of the old speed a second after it forwards again" % RETURNED,
         spine_revived),
]

if __name__ == "__main__":
    sys.exit(harness.run_cases(__doc__, CASES))
