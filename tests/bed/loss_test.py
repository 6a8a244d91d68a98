#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loss, at random and of a window that is too large: every byte is verified, and no more is sent again
than must be."""
import sys

sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import Case, Failed  # noqa: E402

AGAIN = 3.0       # packets retransmitted, for each that the firewall lost (acks among them)
COLLAPSE = 0.5    # of what four links carry
FEWEST_LOST = 100  # or the run was no test
FIXED_STREAMS = 6
FIXED_AGAIN = 0.25  # of the payload; it was ten times the payload in one stream of twelve
SEGMENT = 1408


def lossy_stream(run, percent):
    """The result, verified, and how many packets the firewall lost in it."""
    run.spines("loss", percent)
    result = run.stream().result()
    run.note_result(result)
    if result.figures.get("retransmitted") is None:
        raise Failed("the plugin does not say how many packets it retransmitted")
    lost = run.counters()["lost"]
    run.check("lost_packets", lost, low=FEWEST_LOST)
    run.note(verified_mb=result.figures["bytes"] // 1_000_000)
    return result, lost


def one_percent(run):
    with run.bed():
        result, lost = lossy_stream(run, 1)
        run.note(of_all_links=result.mbps / run.all_links)
        run.check("retransmitted_for_each_lost", result.figures["retransmitted"] / max(1, lost),
                  high=AGAIN)


def five_percent(run):
    with run.bed():
        result, lost = lossy_stream(run, 5)
        run.note(retransmitted_for_each_lost=result.figures["retransmitted"] / max(1, lost))
        run.check("of_all_links", result.mbps / run.all_links, low=COLLAPSE)


def fixed_window(run):
    """2 MB in flight are 22 ms of queue here, ten times what the first samples of the RTT tell."""
    with run.bed():
        again = []
        for _ in range(FIXED_STREAMS):
            result = run.stream(1.5, WEFT_CC="fixed").result()
            again.append(result.figures["retransmitted"] * SEGMENT / max(1, result.figures["bytes"]))
        run.note(again="/".join("%.3f" % part for part in again), **run.counters())
        run.check("most_again", max(again), high=FIXED_AGAIN)


CASES = [
    Case("one_percent", "verified, and at most %g retransmitted for each packet lost" % AGAIN,
         one_percent, ci_seeds=2),
    Case("five_percent", "verified, and at least %g of what four links carry" % COLLAPSE,
         five_percent, ci_seeds=2),
    Case("fixed_window", "at most %g of the payload again, however the queues grow" % FIXED_AGAIN,
         fixed_window),
]

if __name__ == "__main__":
    sys.exit(harness.run_cases(__doc__, CASES))
