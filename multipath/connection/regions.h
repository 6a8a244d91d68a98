// SPDX-License-Identifier: Apache-2.0
// The memory that the two ends of a connection may name to each other.
//
// Ours: a region is announced with the first grant that uses it and told again until the peer
// confirms it, so memory that is only sent from costs nothing. An id is reused with a higher epoch.
// The peer's: remembered by id with the newest epoch; a grant counts only once its region, at its
// epoch, is known here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multipath/connection/types.h"
#include "transport/wire/control.h"

namespace weft {

class Regions {
 public:
  bool add(std::byte* base, uint64_t bytes, std::span<const uint64_t> keys, RegionId* id);
  void remove(RegionId id);

  // Ours: whether [at, at + bytes) lies inside a live region.
  bool contains(RegionId id, const std::byte* at, uint64_t bytes) const;
  uint32_t epoch(RegionId id) const { return local_[id].statement.epoch; }
  uint64_t offset(RegionId id, const std::byte* at) const;
  // A grant is about to name it.
  void announce(RegionId id);

  // The peer's, null when it is not known at that epoch.
  const wire::Region* remote(uint32_t id, uint32_t epoch) const;
  // Returns whether it taught something new.
  bool learn(const wire::Region& region);
  void confirm(const wire::RegionSeen& seen);

  bool due() const { return !due_.empty() || !seen_due_.empty(); }
  bool unconfirmed() const { return !unconfirmed_.empty(); }
  // Everything unconfirmed is due again.
  void repeat();
  // Writes what is due until the packet is full; false when something is left.
  bool compose(wire::ControlWriter& out);

 private:
  struct Local {
    wire::Region statement;
    bool live = false;
    bool confirmed = false;
    bool announcing = false;
  };
  struct Remote {
    wire::Region region;
    bool known = false;
  };

  std::vector<Local> local_;
  std::vector<RegionId> free_;
  std::vector<Remote> remote_;
  std::vector<RegionId> unconfirmed_;
  std::vector<RegionId> due_;
  std::vector<wire::RegionSeen> seen_due_;
};

}  // namespace weft
