// SPDX-License-Identifier: Apache-2.0
//
// Which lines of a rank may begin, while it is replayed in relaxed order: a count of unfinished
// needs for each line, and for each thread a list of those whose count has come down to zero.
// Thread-safe: `finish` may be called from any thread; a line is handed out once, to its own
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/ncclnet/trace_rules.h"

namespace weft::ncclnet {

class RelaxedOrder {
 public:
  explicit RelaxedOrder(const RankTrace& rank);

  /// Moves the lines of this thread that may begin since the last call to `lines`.
  void take(uint32_t thread, std::vector<uint32_t>& lines);
  void finish(uint32_t line);
  /// For messages: a line that is not finished and that `line` waits for, or `line` itself.
  uint32_t awaited_by(uint32_t line) const;

 private:
  struct Thread {
    std::mutex mutex;
    std::vector<uint32_t> ready;
  };
  void make_ready(uint32_t line);

  const RankTrace& rank_;
  RankNeeds needs_;
  std::vector<std::vector<uint32_t>> effects_;  // by line: those that wait for it
  std::vector<std::atomic<uint32_t>> open_;     // by line: needs that are not finished
  std::vector<std::atomic<bool>> finished_;
  std::unique_ptr<Thread[]> threads_;
};

}  // namespace weft::ncclnet
