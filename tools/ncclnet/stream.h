// SPDX-License-Identifier: Apache-2.0
//
// `stream`: rank 0 sends messages of one size to rank 1 for some seconds, several under way, and
// rank 1 checks every byte.
//
// Checking must not be the bottleneck, so the sender does not fill each message anew: it has one
// buffer more than the receiver, each filled once with a pattern of its own, and stamps each
// message with its number. What a receive slot held before came from another buffer, so stale
// bytes differ everywhere, and the stamp tells messages apart that share a buffer.
//
// With --parts N each receive is a group of N messages with different tags, sent in an order that
// changes from group to group. The end is a group of zero bytes for each receive still posted.
#pragma once

#include "tools/ncclnet/launcher.h"
#include "tools/ncclnet/rank.h"

namespace weft::ncclnet {

void plan_stream(const Options& options, Plan& plan);
void run_stream(Rank& rank);

}  // namespace weft::ncclnet
