// SPDX-License-Identifier: Apache-2.0
// The Treiber stack of flows with commands; why it is right is in dirty_stack.h.
#include "multipath/engine/dirty_stack.h"

#include "multipath/engine/flow.h"

namespace weft {

void DirtyStack::push(Flow& flow) {
  // Whoever finds the flag set leaves the work to the drain that will clear it: that drain reads
  // the ring after clearing, and both are read-modify-writes of the same flag, so it sees our
  // command.
  if (flow.queued_.exchange(true, std::memory_order_acq_rel)) return;
  Flow* top = top_.load(std::memory_order_relaxed);
  do {
    flow.next_dirty_ = top;
  } while (!top_.compare_exchange_weak(top, &flow, std::memory_order_release,
                                       std::memory_order_relaxed));
}

Flow* DirtyStack::take_reversed() {
  Flow* newest = top_.exchange(nullptr, std::memory_order_acquire);
  Flow* oldest_first = nullptr;
  while (newest) {
    Flow* older = newest->next_dirty_;
    newest->next_dirty_ = oldest_first;
    oldest_first = newest;
    newest = older;
  }
  return oldest_first;
}

Flow* DirtyStack::next_and_clear(Flow& flow) {
  // before the flag: once it is clear, a producer may push the flow again
  Flow* next = flow.next_dirty_;
  flow.queued_.exchange(false, std::memory_order_acq_rel);
  return next;
}

}  // namespace weft
