// SPDX-License-Identifier: Apache-2.0
// Paths to be used again because an answer came back on them without a mark (recycled entropies,
// REPS): the part that selectors which recycle have in common. What they do when it names none is
// their own.
//
// A ring remembers the last paths whose bursts came back unmarked. A burst takes the oldest of them
// that is fresh, once. After a time-out exploring stops for a while, since it may lead into the
// hole again: bursts go to paths that have answered since, and before any did, to remembered ones a
// second time.
//
// Where this differs from the paper: the unit that is recycled is a burst and not a packet, so acks
// are counted up to one, from one mark to the next; where a path's bursts come back with ECN marks,
// its turns are weighed by how many do; a path that comes back from the dead gets a burst to begin
// with; with fewer than 20 bursts in flight nothing is recycled, since the ring then says more
// about the past than about the network.
#pragma once

#include <vector>

#include "multipath/path/oblivious.h"
#include "multipath/path/selector.h"

namespace weft {

class Recycled {
 public:
  explicit Recycled(const SelectorConfig& config);

  // Whether it says where the burst goes. `walk` visits paths in turn.
  bool next(const Turn& turn, ObliviousSelector& walk, PathIndex* path);
  void on_ack(const PathAnswer& answer);
  void on_timeout(PathIndex path, Time now);
  void on_alive(PathIndex path, bool alive);
  // What a turn of this path counts, 0..1.
  double weight(PathIndex path) const;

 private:
  static constexpr uint32_t kRing = 32;
  static constexpr uint32_t kFewBursts = 20;
  struct Entry {
    PathIndex path = 0;
    bool valid = false;
  };
  struct Memory {
    double returned = 0;   // bursts that came back unmarked and are not recycled
    double ecn_share = 0;  // of the last bursts, how much came back with an ECN mark
  };

  bool take(uint32_t place, const Turn& turn, PathIndex* path);
  PathIndex stay(const Turn& turn, ObliviousSelector& walk);
  void remember(PathIndex path);

  const Duration freeze_;
  std::vector<Memory> memory_;  // by path
  PathMask answered_;           // since the freeze began
  std::array<Entry, kRing> ring_{};
  uint32_t head_ = 0;   // where the next entry goes
  uint32_t fresh_ = 0;  // entries before head_ that were not used yet
  uint32_t again_ = 0;  // the next to be used a second time
  Time frozen_until_{INT64_MIN};
};

}  // namespace weft
