// SPDX-License-Identifier: Apache-2.0
// One ack through the cases, and the cut when nothing else helps.
#include "multipath/congestion/nscc.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

// In parts of the capacity, from the specification's constants over its reference capacity of
// 150,000 bytes and its MTU of 4,160.
constexpr double kMtu = 4160.0 / 150000.0;
constexpr double kProportional = 4 * kMtu;  // per RTT, when the queue is empty
constexpr double kEta = 0.15 * kMtu;        // per RTT, always
constexpr double kFirstWindow = 64 << 10;   // until there is an RTT
constexpr double kShrink = 0.8;
constexpr double kLeastCut = 0.5;
constexpr double kGain = 0.0125;  // of the average, for an ack of one reference MTU
// The target of a flow with this window in flight is the pipe's; a larger window's is shorter.
constexpr double kTargetWindow = 100e3;
constexpr double kTargetLeast = 0.25;
constexpr double kTargetShare = 0.75;
constexpr double kTargetMost = 2;
constexpr int kAdaptDivisor = 8;
constexpr int kAdaptDelays = 4;
constexpr double kAdaptSpan = 4;  // in the time that it is measured over

}  // namespace

NsccLaw::NsccLaw(const LawConfig& config, const Pipe& pipe)
    : pipe_(pipe),
      least_(std::min(16.0 * config.segment_bytes,
                      std::max(2.0 * config.segment_bytes, kFirstWindow))),
      most_(std::max<double>(static_cast<double>(config.window_bytes), least_)),
      window_(std::clamp(kFirstWindow, least_, most_)) {}

void NsccLaw::clamp() { window_ = std::clamp(window_, least_, most_); }

void NsccLaw::on_ack(const AckSample& sample) {
  if (!started_ && pipe_.known()) {
    started_ = true;
    window_ = 1.5 * static_cast<double>(pipe_.capacity());
    clamp();
    adapt_at_ = growth_at_ = sample.now;
  }
  achieved_ += sample.bytes;
  if (ignore_ > 0) {
    ignore_ -= std::min(ignore_, sample.bytes);
    return;
  }
  // An ack without a sample says nothing of the network; before the first one nothing is known.
  if (!started_ || sample.rtt.ns <= 0) return;
  quick_adapt(sample.now, sample.queue_delay, pipe_.target_delay());
  react(sample, target());
  apply_growth(sample.now);
}

// Who shares a queue sees the same delay; as the one with the larger window takes it for too long
// earlier, windows meet (Swift's flow scaling, SIGCOMM 2020, section 3.1).
double NsccLaw::target() const {
  const double scale = kTargetLeast + kTargetShare * std::sqrt(kTargetWindow / window_);
  return pipe_.target_delay().seconds() * std::min(scale, kTargetMost);
}

// Half-way between the capacity, of which each who shares a link only learns his share, and one
// size for all: so the smaller grows faster for its size.
double NsccLaw::growth_unit() const {
  return std::sqrt(static_cast<double>(pipe_.capacity()) * kTargetWindow);
}

void NsccLaw::react(const AckSample& sample, double target) {
  const auto capacity = static_cast<double>(pipe_.capacity());
  const auto acked = static_cast<double>(sample.bytes);
  const double q = sample.queue_delay.seconds();
  average_ += std::min(1.0, kGain * acked / (kMtu * capacity)) * (q - average_);
  since_growth_ += sample.bytes;
  if (q < target) {
    if (!sample.marked) growth_ += growth_unit() * acked * kProportional * (1 - q / target);
    return;
  }
  if (sample.now < shrink_at_ || average_ <= target) return;
  window_ *= std::max(kLeastCut, 1 - kShrink * (average_ - target) / average_);
  clamp();
  shrink_at_ = sample.now + sample.rtt;
}

// Growth is gathered and applied a few times an RTT, then the part that everybody gets.
void NsccLaw::apply_growth(Time now) {
  const auto capacity = static_cast<double>(pipe_.capacity());
  const Duration rtt = pipe_.base_rtt() + pipe_.target_delay();
  if (static_cast<double>(since_growth_) < 8 * kMtu * capacity && now - growth_at_ < rtt) return;
  window_ += growth_ / window_;
  window_ += kEta * growth_unit() * std::min(1.0, (now - growth_at_).seconds() / rtt.seconds());
  growth_ = 0;
  since_growth_ = 0;
  growth_at_ = now;
  clamp();
}

void NsccLaw::quick_adapt(Time now, Duration queue_delay, Duration target) {
  const bool wanted = lossy_ || queue_delay > target * kAdaptDelays;
  if (now - adapt_at_ < pipe_.base_rtt() + target) return;
  const auto got = static_cast<double>(achieved_);
  const double time = (now - adapt_at_).seconds() / (pipe_.base_rtt() + target).seconds();
  adapt_at_ = now;
  achieved_ = 0;
  lossy_ = false;
  // A flow that paused has achieved little for a reason of its own.
  if (!wanted || time > kAdaptSpan || got / time >= window_ / kAdaptDivisor) return;
  ignore_ = static_cast<uint64_t>(window_);
  window_ = got / time;
  growth_ = 0;
  clamp();
}

// What is lost was not room in the network: the window gives it up. At one packet in a hundred that
// is a hundredth an RTT, less than growth makes good.
void NsccLaw::on_loss(Time, uint64_t bytes) {
  lossy_ = true;
  window_ -= static_cast<double>(bytes);
  clamp();
}

}  // namespace weft
