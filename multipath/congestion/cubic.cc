// SPDX-License-Identifier: Apache-2.0
// The cubic function, its epochs, and the events that end them.
#include "multipath/congestion/cubic.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

constexpr double kC = 0.4;     // segments a cubed second
constexpr double kBeta = 0.7;  // what is left of a window
constexpr double kRenoGrowth = 3 * (1 - kBeta) / (1 + kBeta);
constexpr double kFastest = 1.5;  // a round

}  // namespace

double CubicLaw::cubic(double seconds) const {
  const double t = seconds - flat_after_;
  return most_ + kC * segment_ * t * t * t;
}

void CubicLaw::begin_epoch(Time now) {
  epoch_ = true;
  began_ = last_ack_ = now;
  most_ = std::max(most_, window_.bytes());
  flat_after_ = std::cbrt((most_ - window_.bytes()) / (kC * segment_));
  reno_ = window_.bytes();
}

void CubicLaw::avoid(const AckSample& sample) {
  if (!epoch_) begin_epoch(sample.now);
  // Time in which the window was not made use of is no time of the epoch (RFC 9438, section 5.8).
  const Duration since = sample.now - last_ack_;
  last_ack_ = sample.now;
  const double window = window_.bytes();
  if (!rounds_.fill(window)) {
    began_ = began_ + since;
    return;
  }
  const double part = static_cast<double>(sample.bytes) / window;
  reno_ += (reno_ < before_ ? kRenoGrowth : 1) * segment_ * part;
  const double time = (sample.now - began_).seconds();
  if (cubic(time) < reno_) {
    window_.set(std::max(window, reno_));
    return;
  }
  const double aim = std::clamp(cubic(time + rounds_.rtt().seconds()), window, kFastest * window);
  window_.set(window + (aim - window) * std::min(part, 1.0));
}

void CubicLaw::on_ack(const AckSample& sample) {
  rounds_.on_ack(sample);
  if (sample.marked) {
    congestion(sample.now);
  } else if (!slow_start_) {
    avoid(sample);
  } else if (rounds_.fill(window_.bytes())) {
    window_.set(window_.bytes() + static_cast<double>(sample.bytes));
  }
}

void CubicLaw::congestion(Time now) {
  if (!rounds_.event(now)) return;
  slow_start_ = epoch_ = false;
  before_ = window_.bytes();
  // Who did not get as far as the last time leaves room for others (fast convergence).
  most_ = before_ < most_ ? before_ * (1 + kBeta) / 2 : before_;
  window_.set(before_ * kBeta);
}

void CubicLaw::on_loss(Time now, uint64_t) { congestion(now); }

}  // namespace weft
