// SPDX-License-Identifier: Apache-2.0
// Registering, announcing and learning regions; what is told is in compose().
#include "multipath/connection/regions.h"

#include <algorithm>

namespace weft {

bool Regions::add(std::byte* base, uint64_t bytes, std::span<const uint64_t> keys, RegionId* id) {
  if (keys.size() > wire::kMaxRails) return false;
  if (free_.empty()) {
    if (local_.size() == kMaxRegions) return false;
    local_.emplace_back();
    free_.push_back(static_cast<RegionId>(local_.size() - 1));
  }
  *id = free_.back();
  free_.pop_back();
  Local& region = local_[*id];
  region.live = true;
  region.confirmed = region.announcing = false;
  wire::Region& s = region.statement;
  s.id = *id;
  ++s.epoch;
  s.base = reinterpret_cast<uint64_t>(base);
  s.length = bytes;
  s.rails = static_cast<uint8_t>(keys.size());
  std::copy(keys.begin(), keys.end(), s.keys.begin());
  return true;
}

void Regions::remove(RegionId id) {
  if (id >= local_.size() || !local_[id].live) return;
  local_[id].live = false;
  std::erase(unconfirmed_, id);
  std::erase(due_, id);
  free_.push_back(id);
}

bool Regions::contains(RegionId id, const std::byte* at, uint64_t bytes) const {
  if (id >= local_.size() || !local_[id].live) return false;
  const wire::Region& s = local_[id].statement;
  const uint64_t address = reinterpret_cast<uint64_t>(at);
  return address >= s.base && bytes <= s.length && address - s.base <= s.length - bytes;
}

uint64_t Regions::offset(RegionId id, const std::byte* at) const {
  return reinterpret_cast<uint64_t>(at) - local_[id].statement.base;
}

void Regions::announce(RegionId id) {
  Local& region = local_[id];
  if (region.announcing || region.confirmed) return;
  region.announcing = true;
  unconfirmed_.push_back(id);
  due_.push_back(id);
}

const wire::Region* Regions::remote(uint32_t id, uint32_t epoch) const {
  if (id >= remote_.size() || !remote_[id].known) return nullptr;
  const wire::Region& region = remote_[id].region;
  return region.epoch == epoch ? &region : nullptr;
}

bool Regions::learn(const wire::Region& region) {
  if (region.id >= kMaxRegions) return false;
  if (region.id >= remote_.size()) remote_.resize(region.id + 1);
  Remote& known = remote_[region.id];
  const bool news = !known.known || region.epoch > known.region.epoch;
  if (news) known = {region, true};
  // Confirm what we know, which may be newer than what was just repeated.
  const wire::RegionSeen seen{region.id, known.region.epoch};
  const bool queued = std::any_of(seen_due_.begin(), seen_due_.end(),
                                  [&](const wire::RegionSeen& s) { return s.id == seen.id; });
  if (!queued || news) {
    std::erase_if(seen_due_, [&](const wire::RegionSeen& s) { return s.id == seen.id; });
    seen_due_.push_back(seen);
  }
  return news;
}

void Regions::confirm(const wire::RegionSeen& seen) {
  if (seen.id >= local_.size()) return;
  Local& region = local_[seen.id];
  if (!region.live || region.statement.epoch != seen.epoch) return;
  region.confirmed = true;
  region.announcing = false;
  std::erase(unconfirmed_, seen.id);
  std::erase(due_, seen.id);
}

void Regions::repeat() { due_ = unconfirmed_; }

bool Regions::compose(wire::ControlWriter& out) {
  while (!seen_due_.empty()) {
    if (!out.add(seen_due_.back())) return false;
    seen_due_.pop_back();
  }
  while (!due_.empty()) {
    if (!out.add(local_[due_.back()].statement)) return false;
    due_.pop_back();
  }
  return true;
}

}  // namespace weft
