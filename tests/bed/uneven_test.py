#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spines that are not alike: one at a quarter of its speed, and one that marks congestion (ECN)."""
import sys

sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import Case  # noqa: E402

SUM = 0.85      # of what three links and a quarter carry
MARKS = 20      # per cent of packets
LESS = 1.0      # what a marking spine carries, of the mean of the others: less than all of it
ODD_SPINE = 2


def shares(run, seen):
    total = sum(seen.sent_by_spine)
    run.note(shares="/".join("%.0f%%" % (100 * sent / total) for sent in seen.sent_by_spine))
    others = [sent for k, sent in enumerate(seen.sent_by_spine, 1) if k != ODD_SPINE]
    return seen.sent_by_spine[ODD_SPINE - 1] / (sum(others) / len(others))


def one_slow(run):
    with run.bed():
        run.spines("slow", ODD_SPINE, "%gmbit" % (harness.LINK_MBPS / 4))
        with run.sampler() as seen:
            result = run.stream().result()
        run.note_result(result)
        shares(run, seen)
        run.check("ratio_of_sum", result.mbps / (run.all_links * 3.25 / 4), low=SUM)


def one_marks(run):
    with run.bed():
        run.spines("mark", ODD_SPINE, MARKS)
        with run.sampler() as seen:
            result = run.stream().result()
        run.note_result(result)
        run.check("of_the_others", shares(run, seen), high=LESS - 1e-3)
        # A sender that takes no part in ECN would make the check above a matter of chance.
        run.check("packets_marked", run.counters()["marked"], low=1)


CASES = [
    Case("one_slow", "at least %g of the sum of what the links carry" % SUM, one_slow, ci_seeds=2,
         enabled=False, why_not="needs a selector that reacts"),
    Case("one_marks", "a spine that marks %d%% carries less than the mean of the others" % MARKS,
         one_marks, ci_seeds=2, enabled=False, why_not="needs ECN and a selector that reacts"),
]

if __name__ == "__main__":
    sys.exit(harness.run_cases(__doc__, CASES))
