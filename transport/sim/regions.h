// SPDX-License-Identifier: Apache-2.0
// The memory that a simulated host has registered, as its NIC knows it: who may read and write what
// by which key. Numbers are not used again.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/base/result.h"
#include "transport/fabric.h"
#include "transport/memory.h"

namespace weft::sim {

class RegionTable {
 public:
  static constexpr size_t kMaxRegions = 65536;

  // `salt` makes the remote key hard to guess.
  Result<MemoryKeys> add(const MemoryRange& range, uint32_t salt) {
    const auto base = reinterpret_cast<uint64_t>(range.base);
    if (!range.base || range.bytes == 0 || base + range.bytes < base) {
      return Status(Code::kInvalidArgument, "sim: a region needs a base, a length and no wrap");
    }
    if (range.kind != MemoryKind::kHost) {
      return Status(Code::kUnavailable, "sim: knows host memory only");
    }
    if (regions_.size() >= kMaxRegions) {
      return Status(Code::kNoResource, "sim: a host registers at most 65536 regions in its life");
    }
    const auto index = static_cast<uint32_t>(regions_.size());
    regions_.push_back({base, range.bytes, uint64_t{salt} << 32 | index, true});
    return MemoryKeys{index + 1, regions_.back().remote_key};
  }

  bool remove(MemoryKeys keys) {
    const uint32_t index = keys.local - 1;
    if (index >= regions_.size() || !regions_[index].live ||
        regions_[index].remote_key != keys.remote)
      return false;
    regions_[index].live = false;
    return true;
  }

  bool may_read(uint32_t local_key, const std::byte* from, uint64_t bytes) const {
    const uint32_t index = local_key - 1;
    return index < regions_.size() &&
           inside(regions_[index], reinterpret_cast<uint64_t>(from), bytes);
  }

  bool may_write(uint64_t remote_key, uint64_t address, uint64_t bytes) const {
    const auto index = static_cast<uint32_t>(remote_key);
    return index < regions_.size() && regions_[index].remote_key == remote_key &&
           inside(regions_[index], address, bytes);
  }

 private:
  struct Region {
    uint64_t base = 0, bytes = 0, remote_key = 0;
    bool live = false;
  };
  static bool inside(const Region& r, uint64_t address, uint64_t bytes) {
    return r.live && address >= r.base && address - r.base <= r.bytes &&
           bytes <= r.bytes - (address - r.base);
  }

  std::vector<Region> regions_;
};

}  // namespace weft::sim
