// SPDX-License-Identifier: Apache-2.0
// The ring of recycled paths.
#include "multipath/path/reps.h"

#include <algorithm>

namespace weft {
namespace {

// A burst that comes back with an ECN mark costs its path so many turns: where one in five does,
// the path gets two turns in five, and other ways carry more before this one's queue overflows.
constexpr double kEcnCost = 8;
constexpr double kEcnGain = 1.0 / 8;  // of the share of marked bursts, a burst

}  // namespace

RepsSelector::RepsSelector(const SelectorConfig& config)
    : explorer_(config),
      freeze_(config.freeze),
      memory_(static_cast<size_t>(config.paths)) {}

double RepsSelector::weight(PathIndex path) const {
  return 1 / (1 + kEcnCost * memory_[path].ecn_share);
}

bool RepsSelector::take(uint32_t place, const Turn& turn, PathIndex* path) {
  const Entry& entry = ring_[place % kRing];
  if (!entry.valid || !turn.usable.test(entry.path)) return false;
  *path = entry.path;
  return true;
}

PathIndex RepsSelector::next(const Turn& turn) {
  PathIndex path = 0;
  const bool frozen = turn.now < frozen_until_;
  while (fresh_ > 0) {
    const bool taken = take(head_ - fresh_, turn, &path);
    --fresh_;
    if (taken && (frozen || turn.bursts >= kFewBursts)) return path;
  }
  return frozen ? stay(turn) : explore(turn);
}

// While frozen: the paths that answered since the time-out, in turn; before any did, the ring.
PathIndex RepsSelector::stay(const Turn& turn) {
  for (size_t tries = 0; tries < memory_.size(); ++tries) {
    const PathIndex path = explorer_.next(turn);
    if (answered_.test(path)) return path;
  }
  PathIndex path = 0;
  for (uint32_t tries = 0; tries < kRing; ++tries) {
    if (take(again_++, turn, &path)) return path;
  }
  return explorer_.next(turn);
}

PathIndex RepsSelector::explore(const Turn& turn) {
  PathIndex path = explorer_.next(turn);
  for (size_t tries = 0; tries < memory_.size(); ++tries) {
    double& turns = memory_[path].turns;
    turns += weight(path);
    if (turns >= 1) {
      turns -= 1;
      break;
    }
    path = explorer_.next(turn);
  }
  return path;
}

void RepsSelector::on_ack(PathIndex path, double bursts, Mark mark) {
  Memory& memory = memory_[path];
  answered_.set(path, true);
  const double ecn = mark == Mark::kEcn ? 1 : 0;
  memory.ecn_share += std::min(1.0, bursts * kEcnGain) * (ecn - memory.ecn_share);
  if (mark != Mark::kNone) {
    memory.returned = 0;  // the burst that it belonged to is spoilt
    return;
  }
  memory.returned += bursts * weight(path);
  while (memory.returned >= 1.0) {
    memory.returned -= 1.0;
    ring_[head_ % kRing] = {path, true};
    ++head_;
    fresh_ = std::min(fresh_ + 1, kRing);
  }
}

void RepsSelector::on_timeout(PathIndex path, Time now) {
  if (now >= frozen_until_) answered_ = {};
  frozen_until_ = now + freeze_;
  on_alive(path, false);
}

void RepsSelector::on_alive(PathIndex path, bool alive) {
  memory_[path] = {};
  answered_.set(path, false);
  if (alive) {
    // What is forgotten is explored only where others are marked: so it gets a burst to begin with.
    ring_[head_++ % kRing] = {path, true};
    fresh_ = std::min(fresh_ + 1, kRing);
    return;
  }
  for (Entry& entry : ring_) entry.valid = entry.valid && entry.path != path;
}

}  // namespace weft
