// SPDX-License-Identifier: Apache-2.0
// What became of a peer's requests for flows, which may be asked again: the flow, or kRefused.
//
// The latest kMost of them, 8 bytes each: a connection lives as long as its communicator, and
// whoever opens and closes flows all the time must not pay for it. What is older than all of these
// is not served again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace weft {

class ServedRequests {
 public:
  static constexpr size_t kMost = 8192;
  static constexpr uint32_t kRefused = UINT32_MAX;

  // Null for a request that was not served, or is forgotten.
  const uint32_t* find(uint32_t request) const {
    const auto at = place_of(request);
    return at != entries_.end() && at->request == request ? &at->became : nullptr;
  }

  // Numbers of an asker grow, so this one was asked before all that are remembered.
  bool forgotten(uint32_t request) const {
    return entries_.size() >= kMost && request < entries_.front().request;
  }

  void remember(uint32_t request, uint32_t became) {
    const auto at = place_of(request);
    if (at != entries_.end() && at->request == request) {
      entries_[static_cast<size_t>(at - entries_.begin())].became = became;
      return;
    }
    entries_.insert(at, {request, became});  // at the end or near it
    if (entries_.size() > kMost) entries_.pop_front();
  }

 private:
  struct Entry {
    uint32_t request = 0;
    uint32_t became = 0;
  };

  std::deque<Entry>::const_iterator place_of(uint32_t request) const {
    return std::lower_bound(entries_.begin(), entries_.end(), request,
                            [](const Entry& e, uint32_t r) { return e.request < r; });
  }

  std::deque<Entry> entries_;  // by request
};

}  // namespace weft
