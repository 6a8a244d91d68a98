// SPDX-License-Identifier: Apache-2.0
// One ack through the cases, and the cut when nothing else helps.
#include "multipath/congestion/nscc.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

// In parts of the capacity, from the specification's constants over its reference network.
constexpr double kMtu = kReferencePacket;
constexpr double kProportional = 4 * kMtu;  // per RTT, when the queue is empty
constexpr double kEta = 0.15 * kMtu;        // per RTT, always
constexpr double kFirstWindow = 1.5;        // capacities
constexpr double kShrink = 0.8;
constexpr double kLeastCut = 0.5;
constexpr double kGain = 0.0125;  // of the average, for an ack of one reference MTU
// The target of a flow with the reference window in flight is the pipe's; a larger window's is
// shorter.
constexpr double kTargetLeast = 0.25;
constexpr double kTargetShare = 0.75;
constexpr double kTargetMost = 2;
constexpr int kAdaptDivisor = 8;
constexpr int kAdaptDelays = 4;
constexpr double kAdaptSpan = 4;  // in the time that it is measured over

}  // namespace

NsccLaw::NsccLaw(const LawConfig& config, const Pipe& pipe) : pipe_(pipe), window_(config) {}

void NsccLaw::on_ack(const AckSample& sample) {
  if (window_.open(pipe_, kFirstWindow)) adapt_at_ = growth_at_ = sample.now;
  achieved_ += sample.bytes;
  held_back_ = held_back_ && sample.held_back;
  if (ignore_ > 0) {
    ignore_ -= std::min(ignore_, sample.bytes);
    return;
  }
  // An ack without a sample says nothing of the network; before the first one nothing is known.
  if (!window_.is_open() || sample.rtt.ns <= 0) return;
  quick_adapt(sample, pipe_.target_delay());
  react(sample, target());
  apply_growth(sample.now);
}

// Who shares a queue sees the same delay; as the one with the larger window takes it for too long
// earlier, windows meet (Swift's flow scaling, SIGCOMM 2020, section 3.1).
double NsccLaw::target() const {
  const double scale = kTargetLeast + kTargetShare * std::sqrt(kReferenceWindow / window_.bytes());
  return pipe_.target_delay().seconds() * std::min(scale, kTargetMost);
}

void NsccLaw::react(const AckSample& sample, double target) {
  const auto capacity = static_cast<double>(pipe_.capacity());
  const auto acked = static_cast<double>(sample.bytes);
  const double q = sample.queue_delay.seconds();
  average_ += std::min(1.0, kGain * acked / (kMtu * capacity)) * (q - average_);
  since_growth_ += sample.bytes;
  if (q < target) {
    if (!sample.marked) growth_ += growth_unit(pipe_) * acked * kProportional * (1 - q / target);
    return;
  }
  if (sample.now < shrink_at_ || average_ <= target) return;
  window_.set(window_.bytes() * std::max(kLeastCut, 1 - kShrink * (average_ - target) / average_));
  shrink_at_ = sample.now + sample.rtt;
}

// Growth is gathered and applied a few times an RTT, then the part that everybody gets.
void NsccLaw::apply_growth(Time now) {
  const auto capacity = static_cast<double>(pipe_.capacity());
  const Duration rtt = pipe_.base_rtt() + pipe_.target_delay();
  if (static_cast<double>(since_growth_) < 8 * kMtu * capacity && now - growth_at_ < rtt) return;
  const double rtts = std::min(1.0, (now - growth_at_).seconds() / rtt.seconds());
  window_.set(window_.bytes() + growth_ / window_.bytes() + kEta * growth_unit(pipe_) * rtts);
  growth_ = 0;
  since_growth_ = 0;
  growth_at_ = now;
}

void NsccLaw::quick_adapt(const AckSample& sample, Duration target) {
  const Time now = sample.now;
  const bool wanted = lossy_ || sample.queue_delay > target * kAdaptDelays;
  // A flow that paused, or waited for a repair, has achieved little for a reason of its own.
  const bool all_the_time = held_back_;
  if (now - adapt_at_ < pipe_.base_rtt() + target) return;
  const auto got = static_cast<double>(achieved_);
  const double time = (now - adapt_at_).seconds() / (pipe_.base_rtt() + target).seconds();
  adapt_at_ = now;
  achieved_ = 0;
  lossy_ = false;
  held_back_ = true;
  if (!wanted || !all_the_time || time > kAdaptSpan ||
      got / time >= window_.bytes() / kAdaptDivisor)
    return;
  ignore_ = sample.in_flight;
  window_.set(got / time);
  growth_ = 0;
}

// What is lost was not room in the network: the window gives it up. At one packet in a hundred that
// is a hundredth an RTT, less than growth makes good.
void NsccLaw::on_loss(Time, uint64_t bytes) {
  lossy_ = true;
  window_.set(window_.bytes() - static_cast<double>(bytes));
}

}  // namespace weft
