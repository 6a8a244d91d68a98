#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spines that are not alike: one at a quarter of its speed, and one that marks congestion (ECN)."""
import sys

sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import Case  # noqa: E402

SUM = 0.85      # of what three links and a quarter carry
MARKS = 20      # per cent of packets
# What a marking spine carries, of the mean of the others and of what it did without: 0.08 to 0.7 in
# 24 runs, 0.3 in the middle. It varies as what comes back soon is used again soon: little stays little.
LESS = 0.85
ODD_SPINE = 2


def of_the_others(run, seen):
    """What the odd spine carried, for the mean of what the others did."""
    others = [sent for k, sent in enumerate(seen.sent_by_spine, 1) if k != ODD_SPINE]
    return seen.sent_by_spine[ODD_SPINE - 1] / (sum(others) / len(others))


def one_slow(run):
    with run.bed():
        run.spines("slow", ODD_SPINE, "%gmbit" % (harness.LINK_MBPS / 4))
        result, _ = run.watched_stream()
        run.check("ratio_of_sum", result.mbps / (run.all_links * 3.25 / 4), low=SUM)


def one_marks(run):
    """Beside a run with the same seed and no marks: what a port takes is chance, so shares vary."""
    with run.bed():
        with run.sampler() as seen:
            run.stream().result()
        unmarked = of_the_others(run, seen)
        run.spines("mark", ODD_SPINE, MARKS)
        _, seen = run.watched_stream()
        marked = of_the_others(run, seen)
        # A sender that takes no part in ECN would make the next check a matter of chance.
        run.check("packets_marked", run.counters()["marked"], low=1)
        run.note(unmarked_of_the_others=unmarked)
        run.check("of_the_others", marked, high=LESS)
        run.check("for_unmarked", marked / unmarked, high=LESS)


CASES = [
    Case("one_slow", "at least %g of the sum of what the links carry" % SUM, one_slow, ci_seeds=2),
    Case("one_marks", "marking %d%%, a spine carries less than the others' mean and than without" % MARKS,
         one_marks, ci_seeds=2),
]

if __name__ == "__main__":
    sys.exit(harness.run_cases(__doc__, CASES))
