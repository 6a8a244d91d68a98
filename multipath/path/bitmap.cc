// SPDX-License-Identifier: Apache-2.0
// The counters of turns to be passed over.
#include "multipath/path/bitmap.h"

#include <algorithm>

namespace weft {
namespace {

constexpr double kTimeoutSkips = 15;
constexpr double kMostSkips = 15;

}  // namespace

BitmapSelector::BitmapSelector(const SelectorConfig& config)
    : walk_(config), skips_(static_cast<size_t>(config.paths)) {}

PathIndex BitmapSelector::next(const Turn& turn) {
  PathIndex path = walk_.next(turn);
  // A lap at most: where all are to be passed over, one has to be taken.
  for (size_t tries = 0; tries < skips_.size() && skips_[path] >= 1; ++tries) {
    skips_[path] -= 1;
    path = walk_.next(turn);
  }
  return path;
}

void BitmapSelector::on_ack(const PathAnswer& answer) {
  if (answer.mark == Mark::kNone) return;
  skips_[answer.path] = std::min(skips_[answer.path] + answer.bursts, kMostSkips);
}

void BitmapSelector::on_timeout(PathIndex path, Time) {
  skips_[path] = std::min(skips_[path] + kTimeoutSkips, kMostSkips);
}

// What was known of it is of the time before.
void BitmapSelector::on_alive(PathIndex path, bool) { skips_[path] = 0; }

}  // namespace weft
