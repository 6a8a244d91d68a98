// SPDX-License-Identifier: Apache-2.0
// What will happen, ordered by (time, sequence): a binary heap. Events of equal time happen in the
// order in which they were scheduled, so that a run depends on nothing but its seed and its calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "transport/base/post.h"
#include "transport/base/units.h"

namespace weft::sim {

struct Packet;

enum class EventKind : uint8_t {
  kDatagram = 1,  // a datagram reaches the other host
  kRead,          // the NIC reads the source of a write
  kComplete,      // the NIC tells the poster that it no longer reads the source
  kLand,          // a write reaches the other host
  kKill,          // a kill is carried out
  kBreak,         // a reliable path breaks
};

struct Event {
  Time at;
  uint64_t sequence = 0;
  EventKind kind = EventKind::kDatagram;
  uint8_t host = 0;  // the poster, or who kills
  PathIndex path = 0;
  LinkId link = 0;  // as that host names it
  uint32_t epoch = 0;
  Packet* packet = nullptr;  // null for kKill and kBreak
};

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  Time next() const { return empty() ? Time::never() : heap_.front().at; }

  void push(Event event) {
    event.sequence = sequence_++;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  // Precondition: not empty.
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
  }

  std::vector<Event> heap_;
  uint64_t sequence_ = 0;
};

}  // namespace weft::sim
