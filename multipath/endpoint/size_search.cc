// SPDX-License-Identifier: Apache-2.0
// The candidates, and the rounds in which ways are asked for them.
#include "multipath/endpoint/size_search.h"

#include <algorithm>
#include <iterator>

namespace weft {
namespace {

// What common ways carry: jumbo frames less a tunnel's headers, Ethernet, Ethernet less one tunnel
// and less two. In between the next smaller one is taken.
constexpr uint32_t kCandidates[] = {8704, 4096, 1408, 1280, SizeSearch::kSmallest};

// New ways of each round, while none has answered; in sum kMostWays.
constexpr int kNewWays[] = {2, 4, 8, 16, 32, 64, 64, 64};
constexpr int kRounds = std::size(kNewWays);

}  // namespace

SizeSearch::SizeSearch(uint32_t largest) : sizes_{largest} {
  for (const uint32_t size : kCandidates) {
    if (size < largest) sizes_.push_back(size);
  }
}

Duration SizeSearch::gap(int rounds) {
  return std::min(kFirstGap * (int64_t{1} << rounds), kLongestGap);
}

void SizeSearch::ask(int way, bool only_smallest) {
  for (const uint32_t size : sizes_) {
    if (size > best_ && (!only_smallest || size == sizes_.back())) asks_.push_back({way, size});
  }
}

std::span<const SizeSearch::Ask> SizeSearch::begin_round(Time now) {
  asks_.clear();
  if (now < next_ || decided(now)) return {};
  if (alive_.empty()) {
    next_ = now + gap(rounds_);
    for (int i = 0; i < kNewWays[rounds_]; ++i) ask(ways_++, rounds_ > 0);
    ++rounds_;
  } else {
    next_ = now + gap(tries_++);
    for (const int way : alive_) ask(way, false);
  }
  return asks_;
}

void SizeSearch::came_back(int way, uint32_t segment, Time now) {
  const bool ours = std::find(sizes_.begin(), sizes_.end(), segment) != sizes_.end();
  if (!ours || way < 0 || way >= ways_) return;
  best_ = std::max(best_, segment);
  const bool known = std::find(alive_.begin(), alive_.end(), way) != alive_.end();
  if (known || alive_.size() == kMostAlive) return;
  if (alive_.empty()) {
    // The first round has asked for all sizes already. Later ones have not, so that is due now.
    if (rounds_ == 1) {
      tries_ = 1;
    } else {
      next_ = std::min(next_, now);
    }
  }
  alive_.push_back(way);
}

bool SizeSearch::decided(Time now) const {
  if (best_ == sizes_.front()) return true;
  return now >= next_ && (alive_.empty() ? rounds_ == kRounds : tries_ >= kTries);
}

}  // namespace weft
