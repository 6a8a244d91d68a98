// SPDX-License-Identifier: Apache-2.0
// FIFO matching of sends to grants, with tags choosing the part of a grouped receive.
//
// The rule (NCCL's): a send goes to the head grant, the oldest with a part left. Its tag picks the
// first free part with that tag; a tag that the head does not have must wait until the head is
// full. The head is full when every part is taken. A send larger than its part is an error.
//
// A Matcher belongs to whoever calls isend and is used by that thread alone, so matching takes no
// lock; it is fed with the kGranted events of one flow, in order.
#pragma once

#include <array>
#include <cstdint>

#include "multipath/connection/types.h"

namespace weft {

class Matcher {
 public:
  struct Match {
    uint32_t number = 0;
    uint8_t part = 0;
  };
  enum class Answer : uint8_t { kMatched, kNotYet, kTooLarge };

  bool full() const { return tail_ - head_ == kMaxReceives; }
  bool empty() const { return head_ == tail_; }

  // Precondition: !full().
  void add(const wire::Grant& grant) { grants_[tail_++ % kMaxReceives] = {grant, 0}; }

  Answer match(int32_t tag, uint64_t bytes, Match* out) {
    if (empty()) return Answer::kNotYet;
    Entry& head = grants_[head_ % kMaxReceives];
    for (uint8_t i = 0; i < head.grant.parts; ++i) {
      const wire::GrantPart& part = head.grant.part[i];
      if (head.taken >> i & 1 || part.tag != tag) continue;
      if (bytes > part.size) return Answer::kTooLarge;
      head.taken |= static_cast<uint8_t>(1u << i);
      *out = {head.grant.number, i};
      if (head.taken == (1u << head.grant.parts) - 1) ++head_;
      return Answer::kMatched;
    }
    return Answer::kNotYet;
  }

 private:
  struct Entry {
    wire::Grant grant;
    uint8_t taken = 0;
  };
  std::array<Entry, kMaxReceives> grants_{};
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

}  // namespace weft
