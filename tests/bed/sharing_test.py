#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several jobs on one network: two large ones side by side, and small messages beside a large one."""
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import Case, Failed, Skipped  # noqa: E402

FAIR = (0.8, 1.25)
SMALL = "8K"
ITERATIONS = 1000
BESIDE_S = 6


def two_jobs(run):
    with run.bed():
        jobs = [run.stream(run.options.seconds + 1.5) for _ in range(2)]
        results = [job.result() for job in jobs]
        speeds = [result.mbps for result in results]
        run.note(mbps="%.0f+%.0f" % tuple(speeds), of_all_links=sum(speeds) / run.all_links,
                 retransmitted="+".join(str(r.figures.get("retransmitted")) for r in results),
                 **run.counters())
        run.check("ratio", speeds[0] / speeds[1], *FAIR)


def latecomer(run):
    """Who has never seen the network empty must not take its queue for the network."""
    with run.bed():
        first = run.stream(run.options.seconds + 3)
        time.sleep(1.5)
        late = run.stream(run.options.seconds).result()
        result = first.result()
        run.note(mbps="%.0f beside %.0f" % (late.mbps, result.mbps), **run.counters())
        run.check("of_half_the_links", late.mbps / (run.all_links / 2), *FAIR)


def percentiles(run):
    result = run.start("latency", "--bytes", SMALL, "--iterations", ITERATIONS).result()
    try:
        return [float(result.figures[key]) for key in ("p50_us", "p99_us")]
    except KeyError as missing:
        raise Failed("weft_ncclnet latency does not say %s" % missing) from missing


def small_beside_large(run):
    """Stated, not judged: what there is to check is that the figures exist and the network was busy."""
    usage = subprocess.run([run.options.tool, "--help"], capture_output=True, text=True).stdout
    if "latency" not in usage:
        raise Skipped("this weft_ncclnet has no `latency` command")
    with run.bed():
        idle = percentiles(run)
        large = run.stream(BESIDE_S)
        time.sleep(1)
        beside = percentiles(run)
        result = large.result()
        run.note(idle_p50_us=idle[0], idle_p99_us=idle[1], beside_p50_us=beside[0],
                 beside_p99_us=beside[1], p99_beside_for_idle=beside[1] / idle[1])
        run.check("large_of_all_links", result.mbps / run.all_links, low=0.2)


CASES = [
    Case("two_jobs", "the goodputs of two jobs at once differ by no more than %g to %g" % FAIR,
         two_jobs, ci_seeds=2),
    Case("latecomer", "a job that starts beside another gets %g to %g of half the links" % FAIR,
         latecomer),
    Case("small_beside_large", "the 99th percentile of 8 KB messages, idle and beside a stream, is stated",
         small_beside_large),
]

if __name__ == "__main__":
    sys.exit(harness.run_cases(__doc__, CASES))
