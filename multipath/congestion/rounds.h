// SPDX-License-Identifier: Apache-2.0
// Round trips, one after the other: what came back in each, and which losses are one event.
//
// A connection's acks come from many paths, so there is no last packet of a window to wait for, as
// TCP does: a round is as long as a smoothed round trip. What is lost at one time, on however many
// paths, is told over an RTT and as much as a queue may have added before the last of it is missed:
// all of that is one loss event.
#pragma once

#include <algorithm>

#include "multipath/congestion/law.h"

namespace weft {

// Something that happens at most once in a while.
class Seldom {
 public:
  // Whether it may happen now; if so, not again for `pause`.
  bool may(Time now, Duration pause) {
    if (now < next_) return false;
    next_ = now + pause;
    return true;
  }

 private:
  Time next_{INT64_MIN};
};

class Rounds {
 public:
  explicit Rounds(const Pipe& pipe) : pipe_(pipe) {}

  // Whether a round ends with this ack.
  bool on_ack(const AckSample& sample) {
    if (sample.rtt.ns > 0) rtt_ = known_ ? (rtt_ * 7 + sample.rtt) / 8 : sample.rtt;
    known_ = known_ || sample.rtt.ns > 0;
    acked_ += sample.bytes;
    if (sample.now < end_) return false;
    last_ = acked_;
    acked_ = 0;
    end_ = sample.now + rtt_;
    return true;
  }
  // Whether a loss, or a mark that counts like one, begins an event.
  bool event(Time now) { return events_.may(now, rtt_ + pipe_.target_delay()); }

  Duration rtt() const { return rtt_; }
  // Whether the sender makes use of its window; who does not has not tried a larger one (RFC 7661).
  // A window that doubles each round is acked by half, and acks come in lumps.
  bool fill(double window) const {
    return static_cast<double>(std::max(last_, acked_)) * 4 >= window;
  }

 private:
  const Pipe& pipe_;
  Duration rtt_ = milliseconds(1);  // until there is a sample
  bool known_ = false;
  Time end_{INT64_MIN};
  uint64_t acked_ = 0;  // in the round that runs
  uint64_t last_ = 0;   // in the one before
  Seldom events_;
};

}  // namespace weft
