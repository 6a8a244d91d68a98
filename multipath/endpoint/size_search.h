// SPDX-License-Identifier: Apache-2.0
// Which segment the way to a peer carries whole: a search by datagrams that come back, or do not.
//
// An interface's MTU is that of the first hop. What lies behind (a tunnel, an overlay) may take
// less, and a datagram that is too long for it vanishes: routers do not fragment ours, and the
// "too big" that some answer can be forged by anybody. So datagrams of several sizes are sent and
// the peer returns each at its size. The largest that came back is the answer, for both directions.
//
// It ends at once when the largest of all comes back, which is the rule and takes a round trip. Else
// a few rounds later: a size that is missing four times while smaller ones come is too large (or
// very unlucky, which costs speed and nothing else). If nothing comes in about 1.3 s there is no
// answer: the peer may be starved, or its answers filtered. Nobody ever waits for longer.
//
// Pure: no clock, no socket. Ownership: none. What may fail: as said, there may be no answer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transport/base/units.h"

namespace weft {

class SizeSearch {
 public:
  // `largest`: the segment that the first hop carries.
  explicit SizeSearch(uint32_t largest);

  // Something to find out: there is more than one candidate.
  bool worthwhile() const { return sizes_.size() > 1; }

  // Begins a round if one is due; which segments to send, largest first.
  std::span<const uint32_t> begin_round(Time now);
  // When begin_round() or decided() has something new to say.
  Time next() const { return next_; }

  int round() const { return rounds_; }
  void came_back(uint32_t segment);
  bool decided(Time now) const;
  // 0: nothing came back.
  uint32_t answer() const { return best_; }

  // The smallest candidate: its datagram is as long as the longest control packet, so a way that
  // does not carry it carries no connection.
  static constexpr uint32_t kSmallest = 1152;

 private:
  static constexpr int kRounds = 8;
  static constexpr int kRoundsWithAnAnswer = 4;
  static constexpr Duration kFirstGap = milliseconds(10);  // doubles with each round
  static constexpr Duration kLongestGap = milliseconds(320);

  std::vector<uint32_t> sizes_;  // largest first
  uint32_t best_ = 0;
  int rounds_ = 0;
  Time next_{INT64_MIN};
};

}  // namespace weft
