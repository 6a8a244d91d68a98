// SPDX-License-Identifier: Apache-2.0
// The ring of recycled paths, and what it says while exploring is not wanted.
#include "multipath/path/recycled.h"

#include <algorithm>

namespace weft {
namespace {

// A burst that comes back with an ECN mark costs its path so many turns: where one in five does,
// the path gets two turns in five, and other ways carry more before this one's queue overflows.
constexpr double kEcnCost = 8;
constexpr double kEcnGain = 1.0 / 8;  // of the share of marked bursts, a burst

}  // namespace

Recycled::Recycled(const SelectorConfig& config)
    : freeze_(config.freeze), memory_(static_cast<size_t>(config.paths)) {}

double Recycled::weight(PathIndex path) const {
  return 1 / (1 + kEcnCost * memory_[path].ecn_share);
}

bool Recycled::take(uint32_t place, const Turn& turn, PathIndex* path) {
  const Entry& entry = ring_[place % kRing];
  if (!entry.valid || !turn.usable.test(entry.path)) return false;
  *path = entry.path;
  return true;
}

void Recycled::remember(PathIndex path) {
  ring_[head_++ % kRing] = {path, true};
  fresh_ = std::min(fresh_ + 1, kRing);
}

bool Recycled::next(const Turn& turn, ObliviousSelector& walk, PathIndex* path) {
  const bool frozen = turn.now < frozen_until_;
  while (fresh_ > 0) {
    const bool taken = take(head_ - fresh_, turn, path);
    --fresh_;
    if (taken && (frozen || turn.bursts >= kFewBursts)) return true;
  }
  if (frozen) *path = stay(turn, walk);
  return frozen;
}

// While frozen: the paths that answered since the time-out, in turn; before any did, the ring.
PathIndex Recycled::stay(const Turn& turn, ObliviousSelector& walk) {
  for (size_t tries = 0; tries < memory_.size(); ++tries) {
    const PathIndex path = walk.next(turn);
    if (answered_.test(path)) return path;
  }
  PathIndex path = 0;
  for (uint32_t tries = 0; tries < kRing; ++tries) {
    if (take(again_++, turn, &path)) return path;
  }
  return walk.next(turn);
}

void Recycled::on_ack(const PathAnswer& answer) {
  Memory& memory = memory_[answer.path];
  answered_.set(answer.path, true);
  const double ecn = answer.mark == Mark::kEcn ? 1 : 0;
  memory.ecn_share += std::min(1.0, answer.bursts * kEcnGain) * (ecn - memory.ecn_share);
  if (answer.mark != Mark::kNone) {
    memory.returned = 0;  // the burst that it belonged to is spoilt
    return;
  }
  memory.returned += answer.bursts * weight(answer.path);
  while (memory.returned >= 1.0) {
    memory.returned -= 1.0;
    remember(answer.path);
  }
}

void Recycled::on_timeout(PathIndex path, Time now) {
  if (now >= frozen_until_) answered_ = {};
  frozen_until_ = now + freeze_;
  on_alive(path, false);
}

void Recycled::on_alive(PathIndex path, bool alive) {
  memory_[path] = {};
  answered_.set(path, false);
  if (alive) {
    // What is forgotten is explored only where others are marked: so it gets a burst to begin with.
    remember(path);
    return;
  }
  for (Entry& entry : ring_) entry.valid = entry.valid && entry.path != path;
}

}  // namespace weft
