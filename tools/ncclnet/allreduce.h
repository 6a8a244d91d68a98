// SPDX-License-Identifier: Apache-2.0
//
// `allreduce`: ring all-reduces of floats over the plugin, each size a number of times, with a
// table of times as it goes. All sums are checked, exactly: the values are small whole numbers
// that depend on rank, element and iteration, so any order of adding gives the same float.
#pragma once

#include "tools/ncclnet/launcher.h"
#include "tools/ncclnet/rank.h"

namespace weft::ncclnet {

void plan_allreduce(const Options& options, Plan& plan);
void run_allreduce(Rank& rank);

}  // namespace weft::ncclnet
