// SPDX-License-Identifier: Apache-2.0
// weft_ncclnet check: whether a recorded run can be replayed under the rules asked for. It loads no
// plugin and starts no rank.
#pragma once

#include "tools/ncclnet/options.h"

namespace weft::ncclnet {

/// Prints the last line; returns the exit code.
int run_check(const Options& options);

}  // namespace weft::ncclnet
