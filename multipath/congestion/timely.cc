// SPDX-License-Identifier: Apache-2.0
// A round's mean round trip, and what it does to the rate.
#include "multipath/congestion/timely.h"

#include <algorithm>

namespace weft {
namespace {

constexpr double kFirstWindow = 1;   // capacities
constexpr double kHighOverLow = 10;  // the thresholds: 35 and 350 us in the paper
constexpr double kBeta = 0.008;      // between the thresholds, as patched
constexpr double kHighBeta = 0.8;    // above the upper one, as it was
constexpr double kGain = 0.125;      // of the gradient's average
constexpr double kStep = 0.008;      // of the growth unit, a round
constexpr int kShortRounds = 5;      // from then on, the step counts
constexpr double kFastSteps = 5;     // so often (hyperactive increase)
constexpr double kLossCut = 0.5;

}  // namespace

void TimelyLaw::on_ack(const AckSample& sample) {
  window_.open(pipe_, kFirstWindow);
  if (sample.rtt.ns > 0) {
    sum_ += (pipe_.base_rtt() + sample.queue_delay).seconds();
    ++samples_;
  }
  if (!rounds_.on_ack(sample) || samples_ == 0) return;
  const double rtt = sum_ / samples_;
  sum_ = samples_ = 0;
  if (window_.is_open() && rtt > 0) update(rtt);
}

void TimelyLaw::update(double rtt) {
  const double base = pipe_.base_rtt().seconds();
  const double low = base + pipe_.target_delay().seconds();
  const double high = low * kHighOverLow;
  const double before = rtt_ > 0 ? rtt_ : rtt;
  gradient_ += kGain * ((rtt - before) / base - gradient_);
  rtt_ = rtt;
  const double step = kStep * growth_unit(pipe_);
  short_rounds_ = rtt < low ? short_rounds_ + 1 : 0;
  double window = window_.bytes();
  if (rtt < low) {
    window += step * (short_rounds_ >= kShortRounds ? kFastSteps : 1);
  } else if (rtt > high) {
    window *= 1 - kHighBeta * (1 - high / rtt);
  } else {
    const double weight = std::clamp(2 * gradient_ + 0.5, 0.0, 1.0);
    const double error = (rtt - low) / low;
    window = window * (1 - kBeta * weight * error) + step * (1 - weight);
  }
  window_.set(window);
}

void TimelyLaw::on_loss(Time now, uint64_t) {
  if (rounds_.event(now)) window_.set(window_.bytes() * kLossCut);
}

}  // namespace weft
