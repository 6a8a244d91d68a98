// SPDX-License-Identifier: Apache-2.0
// Round-trip time of a path: smoothed, its variation, its minimum and a recent maximum (RFC 9002,
// section 5).
//
// Samples are acked time minus sent time minus the receiver's hold. A sample whose acker had not
// polled for a while is an upper bound only: it may lower the estimate and never raises it.
#pragma once

#include <algorithm>

#include "transport/base/units.h"

namespace weft {

class RttEstimator {
 public:
  bool known() const { return known_; }
  Duration smoothed() const { return smoothed_; }
  Duration variation() const { return variation_; }
  Duration minimum() const { return minimum_; }
  Duration latest() const { return latest_; }
  // Longer than nearly all round trips (RFC 6298's bound).
  Duration likely() const { return smoothed_ + variation_ * 4; }
  // The largest sample seen lately; decays by 1/64 with each sample.
  Duration recent_maximum() const { return maximum_; }

  void add(Duration sample, bool upper_bound) {
    sample = std::max(sample, Duration{1});
    if (!known_) {
      known_ = true;
      smoothed_ = latest_ = minimum_ = maximum_ = sample;
      variation_ = sample / 2;
      return;
    }
    maximum_ = std::max(sample, maximum_ - maximum_ / 64);
    if (upper_bound && sample > smoothed_) return;
    latest_ = sample;
    minimum_ = std::min(minimum_, sample);
    const Duration off = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
    variation_ = (variation_ * 3 + off) / 4;
    smoothed_ = (smoothed_ * 7 + sample) / 8;
  }

 private:
  bool known_ = false;
  Duration smoothed_{}, variation_{}, minimum_{}, latest_{}, maximum_{};
};

}  // namespace weft
