// SPDX-License-Identifier: Apache-2.0
// The target, and one ack against it.
#include "multipath/congestion/swift.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

constexpr double kBeta = 0.8;
constexpr double kLeastCut = 0.5;
constexpr double kFirstWindow = 1;  // capacities
// Flow scaling: nothing is added at the larger window, all of the range at the smaller one.
constexpr double kScaleRange = 4;  // target delays
constexpr double kScaleLeast = 1.0 / 40;
constexpr double kScaleMost = 4;  // both in reference windows: the paper's 0.1 and 100 packets,
                                  // moved to where the windows here are

}  // namespace

double SwiftLaw::target() const {
  const double least = 1 / std::sqrt(kScaleLeast);
  const double most = 1 / std::sqrt(kScaleMost);
  const double here = 1 / std::sqrt(window_.bytes() / kReferenceWindow);
  const double part = std::clamp((here - most) / (least - most), 0.0, 1.0);
  return pipe_.base_rtt().seconds() + pipe_.target_delay().seconds() * (1 + kScaleRange * part);
}

void SwiftLaw::on_ack(const AckSample& sample) {
  rounds_.on_ack(sample);
  window_.open(pipe_, kFirstWindow);
  if (!window_.is_open() || sample.rtt.ns <= 0) return;
  const double delay = (pipe_.base_rtt() + sample.queue_delay).seconds();
  const double aim = target();
  if (delay < aim) {
    const double step = kReferencePacket * growth_unit(pipe_);
    window_.set(window_.bytes() + step * static_cast<double>(sample.bytes) / window_.bytes());
  } else if (shrinks_.may(sample.now, sample.rtt)) {
    window_.set(window_.bytes() * std::max(kLeastCut, 1 - kBeta * (delay - aim) / delay));
  }
}

void SwiftLaw::on_loss(Time now, uint64_t) {
  if (rounds_.event(now)) window_.set(window_.bytes() * kLeastCut);
}

}  // namespace weft
