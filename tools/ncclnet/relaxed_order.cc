// SPDX-License-Identifier: Apache-2.0
// Counting needs down; see relaxed_order.h.
#include "tools/ncclnet/relaxed_order.h"

namespace weft::ncclnet {

RelaxedOrder::RelaxedOrder(const RankTrace& rank)
    : rank_(rank),
      needs_(relaxed_needs(rank)),
      effects_(rank.lines.size()),
      open_(rank.lines.size()),
      finished_(rank.lines.size()),
      threads_(std::make_unique<Thread[]>(rank.threads.size())) {
  for (uint32_t line = 0; line < needs_.size(); ++line) {
    for (const Need& need : needs_[line]) effects_[need.line].push_back(line);
    open_[line] = static_cast<uint32_t>(needs_[line].size());
    if (needs_[line].empty()) make_ready(line);
  }
}

void RelaxedOrder::make_ready(uint32_t line) {
  Thread& thread = threads_[rank_.lines[line].thread];
  const std::lock_guard<std::mutex> lock(thread.mutex);
  thread.ready.push_back(line);
}

void RelaxedOrder::take(uint32_t thread, std::vector<uint32_t>& lines) {
  const std::lock_guard<std::mutex> lock(threads_[thread].mutex);
  std::vector<uint32_t>& ready = threads_[thread].ready;
  lines.insert(lines.end(), ready.begin(), ready.end());
  ready.clear();
}

void RelaxedOrder::finish(uint32_t line) {
  finished_[line].store(true, std::memory_order_release);
  // What a line did is seen by those that waited for it: through this count, whichever thread takes
  // the last step of it, and then through the lock of the list.
  for (const uint32_t effect : effects_[line]) {
    if (open_[effect].fetch_sub(1, std::memory_order_acq_rel) == 1) make_ready(effect);
  }
}

uint32_t RelaxedOrder::awaited_by(uint32_t line) const {
  for (const Need& need : needs_[line]) {
    if (!finished_[need.line].load(std::memory_order_acquire)) return need.line;
  }
  return line;
}

}  // namespace weft::ncclnet
