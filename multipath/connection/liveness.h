// SPDX-License-Identifier: Apache-2.0
// Is there anybody? Silence on all paths for the peer time-out decides that a peer is dead.
//
// Only time in which we ourselves polled counts as silence: a process that was stopped does not
// blame its peer for it. While somebody here waits for the peer, a ping goes out at a quarter of
// the time-out; with nobody waiting, nothing is sent and nothing is decided.
#pragma once

#include "transport/base/units.h"

namespace weft {

class Liveness {
 public:
  explicit Liveness(Duration timeout) : timeout_(timeout) {}

  void heard(Time now) {
    last_heard_ = now;
    pings_ = 0;
  }
  // Before deadlines are looked at: how late we are ourselves is not the peer's silence.
  void polled(Time now) {
    if (deadline() == Time::never()) return;
    const Duration late = now - deadline();
    if (late > kTolerance) last_heard_ = last_heard_ + late;
  }
  void expect(bool waiting, Time now) {
    waiting = waiting || now < wanted_until_;
    if (waiting && !waiting_) last_heard_ = now;  // silence begins when somebody listens
    waiting_ = waiting;
  }
  void ask_at_once(Time now) { hint_ = now; }
  // The application waits although nothing is outstanding: a send has found no grant.
  void want(Time now) { wanted_until_ = now + kWanted; }

  bool dead(Time now) const { return waiting_ && now - last_heard_ >= timeout_; }
  bool ping_due(Time now) const { return waiting_ && next_ping() <= now; }
  void pinged() {
    ++pings_;
    hint_ = Time::never();
  }
  Time deadline() const {
    return waiting_ ? earlier(next_ping(), last_heard_ + timeout_) : Time::never();
  }
  Time last_heard() const { return last_heard_; }

 private:
  static constexpr Duration kTolerance = milliseconds(100);
  static constexpr Duration kWanted = seconds(1);

  // One ping at a quarter of the time-out, one at half, then four more: one of them gets through,
  // or nobody is there.
  Time next_ping() const {
    const Duration quarter = timeout_ / 4;
    const Duration after =
        pings_ < 2 ? quarter * (pings_ + 1) : quarter * 2 + timeout_ / 10 * (pings_ - 1);
    return earlier(hint_, last_heard_ + after);
  }

  const Duration timeout_;
  bool waiting_ = false;
  int pings_ = 0;
  Time last_heard_{};
  Time hint_ = Time::never();
  Time wanted_until_{INT64_MIN};
};

}  // namespace weft
