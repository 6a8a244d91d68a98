// SPDX-License-Identifier: Apache-2.0
//
// One rank: the process in which a plugin is loaded and driven. Here is what all modes share: the
// calls (each marked on the status board, each result checked), the plugin's log, the channel to
// the parent, and how a rank ends.
//
// A rank ends in one of two ways: `finish` after all went well and the plugin is unloaded, or
// `fail`, from any thread, which sends the verdict and ends the process at once (threads may be
// stuck inside the plugin, so nothing is joined or unwound). The first to fail speaks.
#pragma once

#include <ctime>

#include <atomic>
#include <cstdint>
#include <string>

#include "tools/common/clock.h"
#include "tools/common/exit_codes.h"
#include "tools/ncclnet/board.h"
#include "tools/ncclnet/channel.h"
#include "tools/ncclnet/options.h"
#include "tools/ncclnet/plugin.h"

namespace weft::ncclnet {

// The descriptors that a rank inherits.
inline constexpr int kChannelFd = 3;
inline constexpr int kBoardFd = 4;
inline constexpr int kStatsFd = 5;

class Rank {
 public:
  Rank(const Options& options, uint32_t index, uint32_t count, Board* board);

  const Options& options() const { return options_; }
  uint32_t index() const { return index_; }
  uint32_t count() const { return count_; }
  RankChannel& channel() { return channel_; }
  Board& board() { return *board_; }
  const Api& api() const { return plugin_.api(); }

  /// Loads the plugin; fails the rank when it cannot be.
  void load();
  /// Unloads it, sends the verdict; returns the exit code.
  int finish();
  /// `why` should say thread, line, what was expected and what was seen.
  [[noreturn]] void fail(tools::ExitCode code, const std::string& why);

  /// Which slot of the board the calling thread writes to. Call first in every thread.
  void use_slot(uint32_t slot, uint32_t thread_number);
  static ThreadSlot& slot() { return *slot_; }
  /// "thread 2 line 345: ", or nothing where there is no trace.
  static std::string place();

  /// Calls the plugin. Anything but success ends the rank with exit code 4.
  template <class Function, class... Arguments>
  void call(Call id, Function* function, Arguments... arguments) {
    const nccl::Result result = attempt(id, function, arguments...);
    if (result != nccl::kSuccess) fail_call(id, result);
  }
  /// Likewise, where a failure may be right.
  template <class Function, class... Arguments>
  nccl::Result attempt(Call id, Function* function, Arguments... arguments) {
    slot().inside.store(id, std::memory_order_relaxed);
    const nccl::Result result = function(arguments...);
    slot().inside.store(Call::kNone, std::memory_order_relaxed);
    return result;
  }
  [[noreturn]] void fail_call(Call id, nccl::Result result);

  /// The logger and the profiler callback to hand to init.
  static nccl::Logger logger();
  static nccl::ProfilerCallback profiler();
  /// What isend and irecv get as profiler handle: NCCL never passes null.
  static void* profile_handle();

  /// Meets the other ranks. Returns the largest `value` that any of them gave. Polls `progress`
  /// meanwhile, as a plugin may need to be driven for its peer's sake. Does not sleep: ranks leave
  /// together, which timing relies on.
  template <class Progress>
  uint64_t barrier(uint32_t number, uint64_t value, Progress progress);

  void data_begins();
  void data_arrived(uint64_t bytes, uint64_t messages);

 private:
  [[noreturn]] void parent_is_gone();

  const Options& options_;
  uint32_t index_;
  uint32_t count_;
  Board* board_;
  RankChannel channel_;
  Plugin plugin_;
  std::atomic<bool> failed_{false};
  static thread_local ThreadSlot* slot_;
};

/// How a thread waits that has found nothing to do `idle` times in a row. With requests open it
/// only yields, so that a wait never limits the throughput; without it may sleep a little.
class Backoff {
 public:
  void progressed() { idle_ = 0; }
  void pause(bool may_sleep);

 private:
  uint32_t idle_ = 0;
};

template <class Progress>
uint64_t Rank::barrier(uint32_t number, uint64_t value, Progress progress) {
  if (!channel_.ready(number, value)) parent_is_gone();
  Backoff backoff;
  for (;;) {
    if (const auto largest = channel_.passed(number)) return *largest;
    progress();
    backoff.pause(false);
  }
}

/// Runs one rank (the hidden `rank` subcommand). Returns the exit code of the process.
int run_rank(const Options& options, uint32_t index, uint32_t count);

}  // namespace weft::ncclnet
