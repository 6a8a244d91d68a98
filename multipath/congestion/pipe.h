// SPDX-License-Identifier: Apache-2.0
// What a connection learns about the network it sends into: how long an empty way takes, how much
// comes out at the other end, and how much of a delay means nothing.
//
// Base RTT is the minimum over all paths; the first one is bounded, since who comes late sees the
// queues of others, and it only rises when even the least window is answered more slowly for a
// second: then the ways are longer, and it is not our own queue. (A windowed minimum, as in BBR,
// makes the queue of a flow that never pauses part of the base.) Once a segment has been answered
// only segments count: what is small is there earlier on every hop, and the difference is no queue.
// The rate is a windowed maximum of
// what was delivered, until then the port's own claim; of intervals in which the sender at times
// had nothing to send only a faster one counts (as in BBR). Noise is the mean deviation of RTT
// samples from a mean that follows them, over the last intervals and within bounds that the fabric
// sets: our own queues are in it too. From these follow the two delays that matter: `mark_delay`,
// from which a queue counts as a congestion mark (3 us on a quiet fabric: a threshold like this
// stands in for ECN almost without loss), and `target_delay`, what a law aims at (the base RTT:
// NSCC without trimming), both no less than a multiple of the noise. Where noise decides, the two
// are one: marks well below the target would be everywhere, and a selector could not tell a slow
// way from others.
//
// Pure; one object a connection. All sizes are payload bytes.
#pragma once

#include <array>
#include <cstdint>

#include "transport/base/units.h"

namespace weft {

struct PipeConfig {
  double port_bytes_per_second = 0;  // 0: not known
  // Of the fabric: no delay below is told from noise, and no delay above is taken for it.
  Duration noise_floor{};
  Duration noise_ceiling = milliseconds(1);
  // No network of this kind is taken to be longer before it has shown it.
  Duration longest_base = seconds(1);
  Duration interval = milliseconds(2);
};

class Pipe {
 public:
  explicit Pipe(const PipeConfig& config);

  // An RTT sample; `upper_bound`: it holds waiting that was not the network's; `at_least`: the
  // window was at its least; `whole`: of a segment, not of something small.
  void on_sample(Time now, Duration rtt, bool upper_bound, bool at_least, bool whole = true);
  // `held_back`: there is more to send than the window or the port let go.
  void on_delivered(Time now, uint64_t bytes, bool held_back = true);

  bool known() const { return base_rtt_.ns > 0; }
  Duration base_rtt() const { return base_rtt_; }
  Duration noise() const { return noise_; }
  Duration mark_delay() const { return mark_delay_; }
  Duration target_delay() const { return target_delay_; }
  double bytes_per_second() const { return rate_; }
  // What the pipe holds when its queues stand at half the target: the unit in which laws count, as
  // it is one BDP where the target is one base RTT.
  uint64_t capacity() const;
  // Of a sample, what was not the empty network.
  Duration queue_delay(Duration rtt) const {
    return rtt > base_rtt_ ? rtt - base_rtt_ : Duration{0};
  }

 private:
  static constexpr int kIntervals = 16;

  void learn_base(Time now, Duration rtt, bool at_least);
  void end_interval(Time now);
  void derive();

  const PipeConfig config_;
  Duration base_rtt_{};
  bool whole_ = false;  // it is that of a segment
  Duration noise_{};
  Duration mark_delay_{};
  Duration target_delay_{};
  double rate_ = 0;

  // The interval that runs.
  Time began_{INT64_MIN};
  uint64_t delivered_ = 0;
  bool held_back_ = true;  // all the time
  Duration mean_{};
  Duration deviation_{};
  int samples_ = 0;

  // Of the last intervals, a ring; 0 where there is nothing.
  std::array<double, kIntervals> rates_{};
  std::array<Duration, kIntervals> noises_{};
  int turn_ = 0, noise_turn_ = 0;

  // The minimum since the window is at its least.
  Time least_since_ = Time::never();
  Duration least_rtt_{};
};

}  // namespace weft
