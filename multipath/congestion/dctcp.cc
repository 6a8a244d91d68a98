// SPDX-License-Identifier: Apache-2.0
// The marked share, round by round, and one ack.
#include "multipath/congestion/dctcp.h"

namespace weft {
namespace {

constexpr double kGain = 1.0 / 16;  // RFC 8257, section 4.2
constexpr double kLossCut = 0.5;

}  // namespace

void DctcpLaw::measure(const AckSample& sample) {
  acked_ += sample.bytes;
  if (sample.marked) marked_ += sample.bytes;
  if (!rounds_.on_ack(sample) || acked_ == 0) return;
  share_ += kGain * (static_cast<double>(marked_) / static_cast<double>(acked_) - share_);
  acked_ = marked_ = 0;
}

void DctcpLaw::on_ack(const AckSample& sample) {
  measure(sample);
  const auto bytes = static_cast<double>(sample.bytes);
  if (sample.marked) {
    slow_start_ = false;
    if (cuts_.may(sample.now, rounds_.rtt())) window_.set(window_.bytes() * (1 - share_ / 2));
  } else if (rounds_.fill(window_.bytes())) {
    window_.set(window_.bytes() + (slow_start_ ? bytes : segment_ * bytes / window_.bytes()));
  }
}

void DctcpLaw::on_loss(Time now, uint64_t) {
  slow_start_ = false;
  if (rounds_.event(now)) window_.set(window_.bytes() * kLossCut);
}

}  // namespace weft
