// SPDX-License-Identifier: Apache-2.0
// Rounds, and when the path is left.
#include "multipath/path/plb.h"

namespace weft {
namespace {

constexpr double kCongested = 0.5;                 // the part of a round that is marked
constexpr int kRounds = 3;                         // in a row
constexpr Duration kFirstRound = milliseconds(1);  // until there is a sample

}  // namespace

void PlbSelector::begin_round(Time now) {
  round_ends_ = now + (rtt_.known() ? rtt_.smoothed() : kFirstRound);
  bursts_ = marked_ = 0;
}

PathIndex PlbSelector::next(const Turn& turn) {
  if (leave_) {
    path_.leave(turn);
    leave_ = false;
    congested_rounds_ = 0;
    // What comes back within the first round trip says little of the new path's own load.
    begin_round(turn.now);
  }
  return path_.get(turn);
}

void PlbSelector::on_ack(const PathAnswer& answer) {
  if (answer.path != path_.get()) return;
  if (answer.rtt.ns > 0) rtt_.add(answer.rtt, false);
  bursts_ += answer.bursts;
  if (answer.mark != Mark::kNone) marked_ += answer.bursts;
  if (answer.now < round_ends_) return;
  congested_rounds_ = marked_ > kCongested * bursts_ ? congested_rounds_ + 1 : 0;
  leave_ = leave_ || congested_rounds_ >= kRounds;
  begin_round(answer.now);
}

void PlbSelector::on_timeout(PathIndex path, Time) { leave_ = leave_ || path == path_.get(); }

void PlbSelector::on_alive(PathIndex path, bool alive) { path_.on_alive(path, alive); }

}  // namespace weft
