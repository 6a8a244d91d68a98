// SPDX-License-Identifier: Apache-2.0
//
// In what order the lines of a recorded rank are to be replayed, as "this line waits for that one",
// and whether such an order can be kept at all.
//
// Strict: a thread's lines in their order, and what TraceLine::waits_for says of other threads.
//
// Relaxed (for runs whose plugin took every send at once, which in strict order hang where a send
// starts only when its receive is posted). Above means earlier in the file:
// - set-up and tear-down wait for the line before that names their object, whatever the thread;
//   getProperties, devices, setNetAttr for the init; finalize for everything above it;
// - isends wait for the isend before on their comm, irecvs and iflushes likewise;
// - an isend waits for the receives and flushes reported done above it (its data may be theirs);
// - what reads or writes memory waits for every line above that overlaps its bytes: for it to be
//   posted, and to be done where it was reported done above;
// - it waits for the one D before it on its comm to be done, D being the most that the recording
//   had outstanding there;
// - deregMr and close wait for the requests of their comm that were reported done above.
//
// The graph: every line begins when all that it waits for has finished. On top of the rules comes
// what a clear-to-send plugin does: an isend is taken only when its receive is posted, a receive is
// done only when its message was taken, connect finishes only when the peer has accepted, accept
// only when the peer tries to connect; and NCCL tests only the oldest request of a comm and kind.
// All functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ncclnet/trace.h"

namespace weft::ncclnet {

enum class Why : uint8_t {
  kBegun,
  kThread,
  kObject,
  kAbove,
  kData,
  kBytes,
  kWindow,
  kRequests,
  kPosted,
  kOldest,
  kReceive,
  kMessage,
  kListen,
  kAccepted,
  kConnecting,
};

/// "Line `line` (index into RankTrace::lines) must have finished."
struct Need {
  uint32_t line;
  Why why;
};

using RankNeeds = std::vector<std::vector<Need>>;  // by line

RankNeeds strict_needs(const RankTrace& rank);
RankNeeds relaxed_needs(const RankTrace& rank);

/// The calls of a cycle, in words; empty when there is none. `needs` has one entry a rank.
std::string find_cycle(const Trace& trace, const std::vector<RankNeeds>& needs);

}  // namespace weft::ncclnet
