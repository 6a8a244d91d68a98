// SPDX-License-Identifier: Apache-2.0
// The flows whose commands wait for the engine: a lock-free stack with many producers and one
// consumer.
//
// A flow is on the stack at most once (its queued_ flag), so pushing costs an exchange while
// commands wait already, and a flow needs one link only. The consumer takes the whole stack at
// once: no ABA.
//
// Invariant: a command that was pushed into a flow's ring before push(flow) is seen by the drain
// that takes the flow, or the flow is pushed again. Threading: push from any thread, one a flow at
// a time; take_all from the engine. A flow must not die while it is on the stack.
#pragma once

#include <atomic>

namespace weft {

class Flow;

class DirtyStack {
 public:
  void push(Flow& flow);
  bool empty() const { return top_.load(std::memory_order_acquire) == nullptr; }

  // Calls drain(flow) for each flow in the order of their pushes, having cleared its flag first.
  template <class Drain>
  void take_all(Drain drain);

 private:
  Flow* take_reversed();
  static Flow* next_and_clear(Flow& flow);

  std::atomic<Flow*> top_{nullptr};
};

template <class Drain>
void DirtyStack::take_all(Drain drain) {
  if (empty()) return;
  for (Flow* flow = take_reversed(); flow;) {
    Flow* next = next_and_clear(*flow);
    drain(*flow);
    flow = next;
  }
}

}  // namespace weft
