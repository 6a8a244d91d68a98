// SPDX-License-Identifier: Apache-2.0
// Recycled entropies (REPS, Bonato et al. 2024; Ultra Ethernet): send where an answer has just come
// back from without a mark.
//
// A ring remembers the last paths whose bursts came back unmarked. A burst takes the oldest of them
// that is fresh, once; with none it explores, in the order of oblivious spraying. So what a way
// carries follows what it delivers: a slow or loaded way hands out fewer turns, an idle one is
// found by exploring. After a time-out exploring stops for a while, since it may lead into the hole
// again: bursts go to paths that have answered since, and before any did, to remembered ones a
// second time.
//
// Where this differs from the paper: the unit that is recycled is a burst and not a packet, so acks
// are counted up to one, from one mark to the next; where a path's bursts come back with ECN marks,
// its turns are weighed by how many do, those in the ring and those of exploring alike, since a law
// that keeps queues leaves little to recycle anywhere and then exploring decides; a path that comes
// back from the dead gets a burst to begin with; with fewer than 20 bursts in flight it sprays,
// since the ring then says more about the past than about the network.
#pragma once

#include <vector>

#include "multipath/path/oblivious.h"
#include "multipath/path/selector.h"

namespace weft {

class RepsSelector final : public Selector {
 public:
  explicit RepsSelector(const SelectorConfig& config);
  std::string_view name() const override { return "reps"; }
  PathIndex next(const Turn& turn) override;
  void on_ack(PathIndex path, double bursts, Mark mark) override;
  void on_timeout(PathIndex path, Time now) override;
  void on_alive(PathIndex path, bool alive) override;

 private:
  static constexpr uint32_t kRing = 32;
  static constexpr uint32_t kFewBursts = 20;
  struct Entry {
    PathIndex path = 0;
    bool valid = false;
  };

  bool take(uint32_t place, const Turn& turn, PathIndex* path);
  PathIndex explore(const Turn& turn);
  PathIndex stay(const Turn& turn);
  // What a turn of this path counts, 0..1.
  double weight(PathIndex path) const;

  ObliviousSelector explorer_;
  const Duration freeze_;
  struct Memory {
    double returned = 0;   // bursts that came back unmarked and are not recycled
    double ecn_share = 0;  // of the last bursts, how much came back with an ECN mark
    double turns = 1;      // of exploring, offered and not taken
  };
  std::vector<Memory> memory_;  // by path
  PathMask answered_;  // since the freeze began
  std::array<Entry, kRing> ring_{};
  uint32_t head_ = 0;   // where the next entry goes
  uint32_t fresh_ = 0;  // entries before head_ that were not used yet
  uint32_t again_ = 0;  // the next to be used a second time
  Time frozen_until_{INT64_MIN};
};

}  // namespace weft
