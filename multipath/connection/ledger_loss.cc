// SPDX-License-Identifier: Apache-2.0
// When a copy is dead, when to ask, when a path is dead. The rules stand at the top of ledger.h.
#include <algorithm>

#include "multipath/connection/ledger.h"

namespace weft {
namespace {

constexpr uint64_t kReorderPackets = 3;  // RFC 9002, kPacketThreshold
constexpr int kDeadAfterTimeouts = 3;
constexpr Duration kFirstRevival = milliseconds(1);
constexpr Duration kLastRevival = milliseconds(100);
constexpr int kMostBackoff = 6;
constexpr int kStuckTimeouts = 4;

}  // namespace

Duration Ledger::timeout(const Path& path) const {
  const RttEstimator& rtt = path.rtt.known() ? path.rtt : rtt_;
  const Duration base = rtt.known() ? rtt.likely() : config_.initial_rtt * 3;
  const Duration whole = std::max(base + config_.max_hold, config_.timer_floor);
  return whole * (int64_t{1} << std::min(path.timeouts, kMostBackoff));
}

void Ledger::set_deadline(Path& path, Time at) {
  path.deadline = at;
  next_deadline_ = earlier(next_deadline_, at);
}

// Whether the datagram carrying this copy must be taken for lost; asks for a later look when it is
// only suspect.
bool Ledger::overdue(const Path& path, uint64_t number, const Copy& copy, Time now) {
  const RttEstimator& rtt = path.rtt.known() ? path.rtt : rtt_;
  Time due;
  if (number + kReorderPackets <= path.largest_arrived || number < path.probe_arrived) {
    // A path that jitters is not one that loses, and an ack may have been held.
    due = copy.sent + rtt.likely() * 9 / 8 + config_.max_hold;  // RFC 9002, kTimeThreshold
  } else if (copy.probe && !path.dead) {
    return false;  // whether it arrives is what the path's time-out counts
  } else if (copy.sent < newest_arrived_sent_) {
    // RFC 8985 starts at a quarter of an RTT and widens when it was wrong; so do we, from what
    // arrives late but in time to tell. Twice that, or it could never grow past itself.
    const Duration least = std::max(rtt.smoothed() / 4, config_.timer_floor / 4);
    const Duration most = std::max(rtt.smoothed() * 4, config_.timer_floor * 8);
    const Duration window = std::clamp(reorder_ * 2, least, most);
    // The path's own samples may be few and old: what all paths show counts as well.
    const Duration usual = std::max(rtt.likely(), rtt_.likely());
    due = copy.sent + std::max(newest_arrived_rtt_, usual) + window;
  } else {
    return false;
  }
  if (due <= now) return true;
  loss_deadline_ = earlier(loss_deadline_, due);
  return false;
}

// Where order proves nothing, a copy that is missing for long on a path that works otherwise can
// only be declared dead by ending the path's epoch.
void Ledger::demand_kill_if_stuck(Path& path, const Copy& copy, Time now) {
  if (path.killing || copy.epoch != path.epoch) return;
  const Time due = copy.sent + timeout(path) * kStuckTimeouts;
  if (due <= now) {
    kills_wanted_.push_back(path.index);
  } else {
    loss_deadline_ = earlier(loss_deadline_, due);
  }
}

// Whether the copy can no longer arrive.
bool Ledger::condemn(Path& path, uint64_t number, Copy& copy, Time now) {
  if (!config_.offloads.places) {
    if (!overdue(path, number, copy, now)) return false;
    copy.death_stamp = 0;
  } else {
    if (!config_.offloads.ordered_path || !path.ordered || config_.offloads.reliable) {
      demand_kill_if_stuck(path, copy, now);
      return false;
    }
    if (number >= path.largest_arrived || copy.epoch != path.epoch) return false;
    // A rehash may put a copy behind younger ones, late by up to an RTT on top of its way, and the
    // way may have been longer than this path's few samples tell: all paths' are asked as well.
    const Duration longest = std::max(path.rtt.recent_maximum(), rtt_.recent_maximum());
    const Time due = copy.sent + longest * 3;
    if (due > now) {
      const SendMessage* message = copy.probe ? nullptr : find(copy);
      copy.suspect = message && message->state_stamp >= path.arrival_stamp;
      loss_deadline_ = earlier(loss_deadline_, due);
      return false;
    }
    copy.death_stamp = path.arrival_stamp;
  }
  copy.condemned = true;
  return true;
}

// One question an RTT: the answer is on its way.
void Ledger::ask(SendMessage& message, Time now) {
  if (message.query_after <= now) {
    queries_.push_back(message);
    message.query_after = now + std::max(smoothed_rtt(), config_.timer_floor);
  }
  loss_deadline_ = earlier(loss_deadline_, message.query_after);
}

// A condemned copy: repaired once the message's own state, as of the evidence, still lacks the
// segment.
void Ledger::bury(Path& path, Copy& copy, Time now) {
  SendMessage* message = copy.probe ? nullptr : find(copy);
  if (message && !message->finished && !message->acked.test(copy.segment)) {
    if (message->state_stamp < copy.death_stamp) {
      ask(*message, now);
      return;
    }
    message->mark_for_repair(copy.segment);
    ++lost_;
  }
  settle(path, copy);
}

void Ledger::detect_losses(Time now) {
  loss_deadline_ = Time::never();
  for (Path& path : paths_) {
    if (!busy_.test(path.index)) continue;
    for (uint64_t n = path.copies.oldest(); n < path.copies.next(); ++n) {
      Copy& copy = path.copies.at(n);
      if (copy.settled) continue;
      // Copies are in the order of sending: behind the first that may live, all may.
      if (!copy.condemned && !condemn(path, n, copy, now)) break;
      bury(path, copy, now);
      if (!copy.settled) continue;
      copy.lost = true;
      path.lost_below = n + 1;
    }
    path.copies.trim();
    refresh(path);
  }
}

void Ledger::on_deadline(Time now, Time last_heard) {
  if (loss_deadline_ <= now) detect_losses(now);
  if (next_deadline_ > now) return;
  next_deadline_ = Time::never();
  for (Path& path : paths_) {
    if (path.deadline <= now) time_out(path, now, last_heard);
    next_deadline_ = earlier(next_deadline_, path.deadline);
  }
}

// Asks after a copy whose fate is open: the receiver for the state of its message, and on a
// datagram fabric another path for a later arrival, by which RACK can judge the copy.
void Ledger::ask_elsewhere(const Copy& oldest, Time now) {
  SendMessage* message = oldest.probe ? nullptr : find(oldest);
  if (message && !message->finished) queries_.push_back(*message);
  if (config_.offloads.places) return;
  Path& other = paths_[control_path(now, false)];
  other.probe_wanted = other.probe_wanted || other.usable();
}

void Ledger::time_out(Path& path, Time now, Time last_heard) {
  path.deadline = Time::never();
  const Copy* oldest = nullptr;
  for (uint64_t n = path.copies.oldest(); n < path.copies.next() && !oldest; ++n) {
    if (!path.copies.at(n).settled) oldest = &path.copies.at(n);
  }
  if (!oldest && !path.dead) {
    // All was judged by arrivals on other paths. If the youngest was lost the path may lead
    // nowhere.
    path.probe_wanted = wanted_ && path.lost_below > path.largest_arrived + 1;
    return;
  }
  if (!oldest && !wanted_) return;
  if (oldest) ask_elsewhere(*oldest, now);
  path.probe_wanted = !path.copies.full() && !path.killing;
  if (path.dead) {
    revive(path, now, oldest != nullptr);
    return;
  }
  // A silent peer says nothing about a path; only one that is heard elsewhere does.
  if (last_heard > oldest->sent || path.timeouts == 0) ++path.timeouts;
  law_->on_timeout(now);
  selector_->on_timeout(path.index, now);
  if (path.timeouts >= kDeadAfterTimeouts) {
    path.dead = true;
    selector_->on_alive(path.index, false);
    path.revivals_tried = 0;
    if (config_.offloads.places) kills_wanted_.push_back(path.index);
  }
  path.deadline = now + timeout(path);
  refresh(path);
}

// A dead path has just been probed: when again? Rarely, unless a copy on it keeps a message open.
void Ledger::revive(Path& path, Time now, bool holds_copies) {
  ++path.revivals_tried;
  Duration wait = kFirstRevival * (int64_t{1} << std::min(path.revivals_tried, 7));
  if (holds_copies) wait = std::min(wait, timeout(path));
  path.deadline = now + std::min(std::max(wait, config_.timer_floor), kLastRevival);
  // The last probe may have died with the whole epoch: begin another one now and then.
  if (config_.offloads.places && path.revivals_tried % 8 == 0) kills_wanted_.push_back(path.index);
}

void Ledger::set_wanted(bool wanted, Time now) {
  if (wanted == wanted_) return;
  wanted_ = wanted;
  if (!wanted) return;
  for (Path& path : paths_) {
    if (path.dead && path.deadline == Time::never())
      set_deadline(path, now);  // its time has passed
  }
}

bool Ledger::kill_wanted(PathIndex* path) {
  if (kills_wanted_.empty()) return false;
  *path = kills_wanted_.back();
  kills_wanted_.pop_back();
  return true;
}

void Ledger::suspend(Path& path) {
  path.killing = true;
  path.probe_wanted = false;
  refresh(path);
}

void Ledger::bury_epoch(Path& path, uint64_t stamp, Time now) {
  for (uint64_t n = path.copies.oldest(); n < path.copies.next(); ++n) {
    Copy& copy = path.copies.at(n);
    if (copy.settled || copy.epoch > path.epoch) continue;
    copy.condemned = true;
    copy.death_stamp = std::max(copy.death_stamp, stamp);
  }
  ++path.epoch;
  path.killing = false;
  path.dead = true;  // until a probe comes through on the new epoch
  selector_->on_alive(path.index, false);
  path.timeouts = 0;
  path.revivals_tried = 0;
  set_deadline(path, now);
  detect_losses(now);
}

}  // namespace weft
