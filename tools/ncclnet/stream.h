// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tools/ncclnet/launcher.h"
#include "tools/ncclnet/rank.h"
namespace weft::ncclnet {
void plan_stream(const Options& options, Plan& plan);
void run_stream(Rank& rank);
}
