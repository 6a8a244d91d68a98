// SPDX-License-Identifier: Apache-2.0
// Which segment the way to a peer carries whole: a search by datagrams that come back, or do not.
//
// An interface's MTU is that of the first hop. What lies behind (a tunnel, an overlay) may take
// less, and a datagram that is too long for it vanishes: routers do not fragment ours, and the
// "too big" that some answer can be forged by anybody. So datagrams of several sizes are sent and
// the peer returns each at its size. The largest that came back is the answer, for both directions.
//
// A way through the network follows from a pair of ports, and it may be dead, there or back. So a
// way says something about a size only once it has returned anything: it is alive. The first two
// ways are asked for all sizes; as long as none has answered, others are asked for the smallest, in
// rounds that grow: 254 ways in all, of which with three spines of four dead one in sixteen is
// alive (none of 14 is in 40 of 100 cases, none of 254, which share ports, in one of 10,000). Ways
// that are alive are then asked for all.
//
// It ends at once when the largest of all comes back, which is the rule and takes a round trip.
// Else a few rounds later: a size that is missing from living ways four times while smaller ones
// come is too large (or very unlucky, which costs speed and nothing else). If nothing comes in
// about 1.3 s there is no answer: the peer may be starved, or its answers filtered. Nobody ever
// waits for longer.
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

  struct Ask {
    int way = 0;  // below kMostWays
    uint32_t segment = 0;
  };
  // Begins a round if one is due; what to send, each way's largest first. Valid until the next
  // call.
  std::span<const Ask> begin_round(Time now);
  // When begin_round() or decided() has something new to say.
  Time next() const { return next_; }

  void came_back(int way, uint32_t segment, Time now);
  bool decided(Time now) const;
  // 0: nothing came back.
  uint32_t answer() const { return best_; }

  // The smallest candidate: its datagram is as long as the longest control packet, so a way that
  // does not carry it carries no connection.
  static constexpr uint32_t kSmallest = 1152;
  static constexpr int kMostWays = 254;

 private:
  static constexpr int kTries = 4;
  static constexpr size_t kMostAlive = 4;                  // that are asked for all sizes
  static constexpr Duration kFirstGap = milliseconds(10);  // doubles with each round
  static constexpr Duration kLongestGap = milliseconds(320);

  void ask(int way, bool only_smallest);
  static Duration gap(int rounds);

  std::vector<uint32_t> sizes_;  // largest first
  std::vector<Ask> asks_;
  std::vector<int> alive_;
  int ways_ = 0;  // asked so far
  uint32_t best_ = 0;
  int rounds_ = 0;  // without an answer
  int tries_ = 0;   // rounds in which living ways were asked for all sizes
  Time next_{INT64_MIN};
};

}  // namespace weft
