// SPDX-License-Identifier: Apache-2.0
// What will happen in a simulated cluster, in the order of time: a heap of wake-ups. Those of equal
// time come in the order in which they were asked for, so a run depends on its seed and its calls
// alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "transport/base/units.h"

namespace weft::sim {

// Whatever does something at a time: a switch that gets a frame, a NIC that has sent one.
class Actor {
 public:
  virtual ~Actor() = default;
  // `what` is what it asked for, or null.
  virtual void wake(Time now, void* what) = 0;
};

class Scheduler {
 public:
  Time now() const { return now_; }
  Time next() const { return heap_.empty() ? Time::never() : heap_.front().at; }
  uint64_t happened() const { return happened_; }

  // A time that is past counts as now.
  void at(Time time, Actor& actor, void* what = nullptr) {
    heap_.push_back({std::max(time, now_), asked_++, &actor, what});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  // Everything that is due up to `time`, which then is now.
  void advance_to(Time time) {
    while (!heap_.empty() && heap_.front().at <= time) step();
    now_ = std::max(now_, time);
  }

  // The next thing. Precondition: there is one.
  void step() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Entry entry = heap_.back();
    heap_.pop_back();
    now_ = entry.at;
    ++happened_;
    entry.actor->wake(entry.at, entry.what);
  }

 private:
  struct Entry {
    Time at;
    uint64_t order;
    Actor* actor;
    void* what;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  std::vector<Entry> heap_;
  Time now_;
  uint64_t asked_ = 0;
  uint64_t happened_ = 0;
};

}  // namespace weft::sim
