// SPDX-License-Identifier: Apache-2.0
//
// The status board: one page shared by the parent and one rank, where the rank says all the time
// what it is doing. So the parent can tell where a rank was even when it crashed or is stuck
// inside the plugin. Written by the rank's threads with relaxed stores (each its own slot), read
// by the parent; it is for display only, nothing depends on it.
#pragma once

#include <atomic>
#include <cstdint>

#include "tools/ncclnet/calls.h"

namespace weft::ncclnet {

inline constexpr uint32_t kMaxThreads = 64;

enum class Doing : uint32_t { kNotStarted, kRunning, kWaitingForLine, kPolling, kFinished };

struct alignas(64) ThreadSlot {
  std::atomic<uint32_t> line;    // of the trace, from 1; 0 where there is no trace
  std::atomic<uint32_t> number;  // of the thread, in the trace
  std::atomic<Doing> doing;
  std::atomic<uint32_t> awaited;  // kWaitingForLine: the line of another thread
  std::atomic<Call> inside;       // the plugin call it is inside of
  std::atomic<int64_t> moved_ns;  // when something last went on
};

struct Board {
  std::atomic<uint64_t> bytes;         // verified
  std::atomic<int64_t> first_data_ns;  // first isend or irecv; 0: none yet
  std::atomic<int64_t> last_data_ns;   // last completion
  std::atomic<uint64_t> messages;
  std::atomic<int64_t> told_ns;  // from a peer's death to the last call that had to say so; 0: none
  // Of the modes that make their own traffic (links.h).
  std::atomic<uint64_t> connections, connected;
  std::atomic<uint64_t> receives, receives_done, sends, sends_done;
  ThreadSlot threads[kMaxThreads];
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<Call>::is_always_lock_free);

}  // namespace weft::ncclnet
