// SPDX-License-Identifier: Apache-2.0
// Two draws, and what is remembered of the one that lost.
#include "multipath/path/p2c.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

constexpr int kGain = 8;      // one part in so many, as for the RTT of a path
constexpr int kForgive = 16;  // likewise
constexpr int kTries = 16;

}  // namespace

// A usable path by lot; the first from there where many are not.
PathIndex P2cSelector::draw(const Turn& turn) {
  const auto paths = static_cast<uint32_t>(rtt_.size());
  PathIndex path = 0;
  for (int tries = 0; tries < kTries; ++tries) {
    path = static_cast<PathIndex>(random_.below(paths));
    if (turn.usable.test(path)) return path;
  }
  for (uint32_t step = 0; step < paths && !turn.usable.test(path); ++step)
    path = static_cast<PathIndex>((path + 1u) % paths);
  return path;
}

PathIndex P2cSelector::next(const Turn& turn) {
  PathIndex taken = draw(turn);
  PathIndex left = draw(turn);
  if (rtt_[left] < rtt_[taken]) std::swap(taken, left);
  if (rtt_[taken].ns > 0) rtt_[left] = rtt_[left] - (rtt_[left] - rtt_[taken]) / kForgive;
  return taken;
}

void P2cSelector::on_ack(const PathAnswer& answer) {
  if (answer.rtt.ns <= 0) return;
  longest_ = std::max(longest_, answer.rtt);
  Duration& rtt = rtt_[answer.path];
  rtt = rtt.ns == 0 ? answer.rtt : (rtt * (kGain - 1) + answer.rtt) / kGain;
}

void P2cSelector::on_timeout(PathIndex path, Time) { rtt_[path] = longest_ * 2; }

void P2cSelector::on_alive(PathIndex path, bool) { rtt_[path] = Duration{0}; }

}  // namespace weft
