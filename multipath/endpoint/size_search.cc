// SPDX-License-Identifier: Apache-2.0
// The candidates, and the rounds in which they are sent.
#include "multipath/endpoint/size_search.h"

#include <algorithm>

namespace weft {
namespace {

// What common ways carry: jumbo frames less a tunnel's headers, Ethernet, Ethernet less one tunnel
// and less two. In between the next smaller one is taken.
constexpr uint32_t kCandidates[] = {8704, 4096, 1408, 1280, SizeSearch::kSmallest};

}  // namespace

SizeSearch::SizeSearch(uint32_t largest) : sizes_{largest} {
  for (const uint32_t size : kCandidates) {
    if (size < largest) sizes_.push_back(size);
  }
}

std::span<const uint32_t> SizeSearch::begin_round(Time now) {
  if (now < next_ || rounds_ == kRounds) return {};
  next_ = now + std::min(kFirstGap * (int64_t{1} << rounds_), kLongestGap);
  ++rounds_;
  const auto smaller =
      std::find_if(sizes_.begin(), sizes_.end(), [&](uint32_t size) { return size <= best_; });
  return {sizes_.begin(), smaller};
}

void SizeSearch::came_back(uint32_t segment) {
  const bool ours = std::find(sizes_.begin(), sizes_.end(), segment) != sizes_.end();
  if (ours) best_ = std::max(best_, segment);
}

bool SizeSearch::decided(Time now) const {
  if (best_ == sizes_.front()) return true;
  const int enough = best_ != 0 ? kRoundsWithAnAnswer : kRounds;
  return rounds_ >= enough && now >= next_;
}

}  // namespace weft
