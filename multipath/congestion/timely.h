// SPDX-License-Identifier: Apache-2.0
// Patched TIMELY (Mittal et al., SIGCOMM 2015; Zhu et al., CoNEXT 2016): a rate that follows how
// the round trip changes, and how far it is from a threshold.
//
// Round trips shorter than the lower threshold raise the rate by a step, longer than the upper one
// cut it; between them the step counts less and the distance from the lower threshold more, the
// faster the round trip grows. (The distance is the patch: going by the gradient alone, rates have
// no fixed point.) A loss event halves; the networks of the paper lose nothing.
//
// Where this differs from the papers: it is the window that moves, and not a rate that is paced; a
// round's mean is one sample, since the acks of many paths would make the gradient noise; the
// thresholds stand in the papers' proportion and start where the pipe's target delay ends, not at
// 35 us. Between the thresholds rates meet slowly: it takes about a thousand round trips.
#pragma once

#include "multipath/congestion/law.h"
#include "multipath/congestion/rounds.h"
#include "multipath/congestion/window.h"

namespace weft {

class TimelyLaw final : public Law {
 public:
  TimelyLaw(const LawConfig& config, const Pipe& pipe)
      : pipe_(pipe), window_(config), rounds_(pipe) {}
  std::string_view name() const override { return "timely"; }
  void on_ack(const AckSample& sample) override;
  void on_loss(Time now, uint64_t bytes) override;
  void on_timeout(Time) override {}
  uint64_t window() const override { return window_.whole(); }
  bool at_least() const override { return window_.at_least(); }

 private:
  void update(double rtt);

  const Pipe& pipe_;
  Window window_;
  Rounds rounds_;
  double rtt_ = 0;        // of the round before, in seconds; 0: none
  double gradient_ = 0;   // of the RTT, in base RTTs a round
  int short_rounds_ = 0;  // in a row, under the lower threshold
  double sum_ = 0;        // of this round's samples, in seconds
  int samples_ = 0;
};

}  // namespace weft
