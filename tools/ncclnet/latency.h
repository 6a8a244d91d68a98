// SPDX-License-Identifier: Apache-2.0
//
// `latency`: two ranks throw a message of one size back and forth, and rank 0 takes the time from
// before its isend until the answer's test says done. The one-way time is half of that.
//
// What is measured is the way through the plugin and nothing else: both have several receives
// posted ahead, so the plugin knows where the next message belongs before it is sent; every message
// is written before the clock starts; rank 1 answers first and checks then. Every byte of every
// message is checked, at both ends. The first rounds are not counted.
//
// The end is a message of zero bytes for each receive still posted, in both directions.
#pragma once

#include "tools/ncclnet/launcher.h"
#include "tools/ncclnet/rank.h"

namespace weft::ncclnet {

void plan_latency(const Options& options, Plan& plan);
void run_latency(Rank& rank);

}  // namespace weft::ncclnet
