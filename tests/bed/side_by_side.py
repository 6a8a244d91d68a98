#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""For a newcomer: one job over one path and over many, side by side on the bed, and a spine that dies.

  tests/bed/side_by_side.py [--tool PATH] [--plugin PATH]

The job is a ring all-reduce between two hosts with four spines of 200 Mbit/s between them, every sum
checked. Then twice as much of it, while a spine silently stops forwarding: the job has to survive. Exit
code 0 if all jobs were good, 77 where no bed can be built.
"""
import argparse
import os
import sys
import time

sys.dont_write_bytecode = True
import harness  # noqa: E402

BYTES, ITERATIONS = "16M", 4
KILL_AFTER_S = 0.7
DEAD_SPINE = 2
SEED = 1


def allreduce(run, iterations, paths):
    return run.start("allreduce", "--ranks", 2, "--bytes", BYTES, "--iterations", iterations,
                     WEFT_PATHS=paths)


def show(run, what, result, more=""):
    each_way = result.mbps / 2
    print("      %-31s %5.2f s, %3.0f Mbit/s each way, %2.0f%% of four links%s" % (
        what, result.figures["seconds"], each_way, 100 * each_way / run.all_links, more), flush=True)


def killed(run, paths):
    """A longer job in which a spine dies, and what was seen of it."""
    with run.sampler() as seen:
        job = allreduce(run, 2 * ITERATIONS, paths)
        begin = seen.wait_for_traffic() or time.monotonic()
        harness.sleep_until(begin + KILL_AFTER_S)
        run.spines("kill", DEAD_SPINE)
        when = time.monotonic()
        in_time = job.running()
        result = job.result()
    if not in_time:
        raise harness.Failed("the job had ended before the spine died")
    before = seen.rate(begin + 0.2, when - 0.1)
    stall = seen.longest_below(0.1 * before, when - 0.1, min(when + 3, seen.last_traffic()))
    return result, when - begin, stall


def compare(options):
    run = harness.Run(options, SEED)
    paths = os.environ.get("WEFT_PATHS") or "32"  # the tool says what is wrong with it
    with run.bed():
        one = allreduce(run, ITERATIONS, 1).result()
        show(run, "over 1 path", one)
        many = allreduce(run, ITERATIONS, paths).result()
        show(run, "over %s paths" % paths, many,
             ": %.1fx" % (one.figures["seconds"] / many.figures["seconds"]))
        result, when, stall = killed(run, paths)
        show(run, "twice the job, one spine dying", result)
        print("      %-31s silently after %.1f s; longest stall %.0f ms" % ("", when, stall * 1e3))
    print("PASS  every sum is right: over one path, over many, and with a spine dead")


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_tool(parser)
    options = parser.parse_args()
    if not harness.find_tool(options):
        return 77
    harness.end_on_signals()
    try:
        compare(options)
    except harness.Skipped as skipped:
        print("      %s" % skipped)
        return 77
    except harness.Failed as failed:
        print("FAIL  %s" % failed)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
