// SPDX-License-Identifier: Apache-2.0
// NSCC, the sender-side law of Ultra Ethernet (specification 1.0, section 3.6.13), on round-trip
// times.
//
// By mark and queue delay q against the target T: no mark and q < T, grow in proportion to what is
// missing; marked and q < T, keep the window (the selector changes the path); q >= T, shrink once
// an RTT by how far the average exceeds the target. A window that exceeds by far what arrives is
// cut to it at once (quick adapt). The specification's fourth case, q >= T without a mark, lets the
// window grow; here such a delay is itself a mark.
//
// The specification's constants are those of a network of 100 Gbit/s and 12 us, scaled by its
// factors a (capacity) and b (delay). Here growth is in parts of the pipe's capacity, which is a,
// tempered (growth_unit); b is one, because where T stands on noise it says nothing about the
// network's length.
#pragma once

#include "multipath/congestion/law.h"
#include "multipath/congestion/window.h"

namespace weft {

class NsccLaw final : public Law {
 public:
  NsccLaw(const LawConfig& config, const Pipe& pipe);
  std::string_view name() const override { return "nscc"; }
  void on_ack(const AckSample& sample) override;
  void on_loss(Time now, uint64_t bytes) override;
  void on_timeout(Time) override {}
  uint64_t window() const override { return window_.whole(); }
  bool at_least() const override { return window_.at_least(); }

 private:
  void react(const AckSample& sample, double target);
  void apply_growth(Time now);
  void quick_adapt(const AckSample& sample, Duration target);
  // The queue delay to aim at, in seconds: the pipe's, less for those who have much in flight.
  double target() const;

  const Pipe& pipe_;
  Window window_;
  double growth_ = 0;  // bytes^2: divided by the window when applied
  uint64_t since_growth_ = 0;
  Time growth_at_{INT64_MIN};
  Time shrink_at_{INT64_MIN};  // not before
  double average_ = 0;         // of q, in seconds
  // Quick adapt.
  Time adapt_at_{INT64_MIN};
  uint64_t achieved_ = 0;
  bool lossy_ = false;
  bool held_back_ = true;
  uint64_t ignore_ = 0;  // bytes of feedback from before the cut
};

}  // namespace weft
