// SPDX-License-Identifier: Apache-2.0
// Swift (Kumar et al., SIGCOMM 2020): one delay is aimed at, per flow.
//
// Below the target the window grows by a packet an RTT; above it, once an RTT, it shrinks in
// proportion to the excess, by half at most. The target is higher for a small window than for a
// large one (flow scaling), so those who share a queue meet, and many small ones do not tread on
// each other. A loss event halves.
//
// Where this differs from the paper: the delay is one number, not the fabric's and the host's,
// since that is what an RTT sample is here, and the base and the target come from the pipe instead
// of a count of hops; the packet is the reference network's, as NSCC's growth is (growth_unit); and
// a window never falls under the least, where the paper's would be paced.
#pragma once

#include "multipath/congestion/law.h"
#include "multipath/congestion/rounds.h"
#include "multipath/congestion/window.h"

namespace weft {

class SwiftLaw final : public Law {
 public:
  SwiftLaw(const LawConfig& config, const Pipe& pipe)
      : pipe_(pipe), window_(config), rounds_(pipe) {}
  std::string_view name() const override { return "swift"; }
  void on_ack(const AckSample& sample) override;
  void on_loss(Time now, uint64_t bytes) override;
  void on_timeout(Time) override {}
  uint64_t window() const override { return window_.whole(); }
  bool at_least() const override { return window_.at_least(); }

 private:
  double target() const;  // of the whole round trip, in seconds

  const Pipe& pipe_;
  Window window_;
  Rounds rounds_;
  Seldom shrinks_;
};

}  // namespace weft
