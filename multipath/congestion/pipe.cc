// SPDX-License-Identifier: Apache-2.0
// Intervals of samples, and what the last of them say together.
#include "multipath/congestion/pipe.h"

#include <algorithm>

namespace weft {
namespace {

constexpr Duration kMarkDelay = microseconds(3);  // on a fabric without noise
constexpr int kNoises = 8;                        // both are no less than so many deviations
constexpr Duration kPatience = seconds(1);        // at the least window, before the base rises
constexpr int kLeastSamples = 16;                 // that an interval must have to tell its noise
constexpr double kFirstRate = 1.25e9;             // 10 Gbit/s, for a port that claims nothing

}  // namespace

Pipe::Pipe(const PipeConfig& config) : config_(config) {
  rate_ = config.port_bytes_per_second > 0 ? config.port_bytes_per_second : kFirstRate;
  noise_ = config.noise_floor;
  derive();
}

void Pipe::derive() {
  mark_delay_ = std::max(kMarkDelay, noise_ * kNoises);
  target_delay_ = std::max(base_rtt_, noise_ * kNoises);
}

uint64_t Pipe::capacity() const {
  return static_cast<uint64_t>(rate_ * (base_rtt_ + target_delay_).seconds() / 2);
}

void Pipe::learn_base(Time now, Duration rtt, bool at_least) {
  if (base_rtt_.ns == 0 || rtt < base_rtt_) {
    base_rtt_ = base_rtt_.ns == 0 ? std::min(rtt, config_.longest_base) : rtt;
    derive();
  }
  if (!at_least) {
    least_since_ = Time::never();
  } else if (least_since_ == Time::never()) {
    least_since_ = now;
    least_rtt_ = rtt;
  } else {
    least_rtt_ = std::min(least_rtt_, rtt);
    if (now - least_since_ < kPatience) return;
    base_rtt_ = least_rtt_;
    least_since_ = Time::never();
    derive();
  }
}

void Pipe::on_sample(Time now, Duration rtt, bool upper_bound, bool at_least, bool whole) {
  if (whole && !whole_) {
    whole_ = true;
    base_rtt_ = {};
  }
  if (whole || !whole_) learn_base(now, rtt, at_least);
  if (upper_bound) return;
  // Deviation from a mean that follows the samples: a queue that builds up slowly is no noise.
  if (samples_++ == 0) mean_ = rtt;
  const Duration off = rtt > mean_ ? rtt - mean_ : mean_ - rtt;
  mean_ = mean_ + (rtt - mean_) / 8;
  deviation_ = deviation_ + off;
}

void Pipe::on_delivered(Time now, uint64_t bytes, bool held_back) {
  if (began_.ns == INT64_MIN) began_ = now;
  delivered_ += bytes;
  held_back_ = held_back_ && held_back;
  const Duration length = std::max(config_.interval, (base_rtt_ + target_delay_) * 4);
  if (now - began_ >= length) end_interval(now);
}

void Pipe::end_interval(Time now) {
  const double rate = static_cast<double>(delivered_) / (now - began_).seconds();
  if (held_back_ || rate > rate_) {
    turn_ = (turn_ + 1) % kIntervals;
    rates_[static_cast<size_t>(turn_)] = rate;
  }
  noise_turn_ = (noise_turn_ + 1) % kIntervals;
  noises_[static_cast<size_t>(noise_turn_)] =
      samples_ >= kLeastSamples ? deviation_ / samples_ : Duration{0};
  double fastest = 0;
  Duration deviations{};
  int told = 0;
  for (int i = 0; i < kIntervals; ++i) {
    fastest = std::max(fastest, rates_[static_cast<size_t>(i)]);
    const Duration noise = noises_[static_cast<size_t>(i)];
    if (noise.ns > 0) deviations = deviations + noise, ++told;
  }
  if (fastest > 0) rate_ = fastest;
  if (config_.port_bytes_per_second > 0) rate_ = std::min(rate_, config_.port_bytes_per_second);
  if (told > 0) noise_ = std::clamp(deviations / told, config_.noise_floor, config_.noise_ceiling);
  derive();
  began_ = now;
  held_back_ = true;
  delivered_ = 0;
  samples_ = 0;
  deviation_ = {};
}

}  // namespace weft
