// SPDX-License-Identifier: Apache-2.0
// CUBIC (RFC 9438): what TCP does on most machines, for comparison with it and beside it.
//
// After a congestion event the window grows as a cubic function of time, flat around the window at
// which the event came, and never slower than Reno would. A loss event is one, and so is a mark:
// ECN where the fabric shows it, else a queue past the pipe's mark delay.
#pragma once

#include "multipath/congestion/law.h"
#include "multipath/congestion/rounds.h"
#include "multipath/congestion/window.h"

namespace weft {

class CubicLaw final : public Law {
 public:
  CubicLaw(const LawConfig& config, const Pipe& pipe)
      : window_(config), rounds_(pipe), segment_(config.segment_bytes) {}
  std::string_view name() const override { return "cubic"; }
  void on_ack(const AckSample& sample) override;
  void on_loss(Time now, uint64_t bytes) override;
  void on_timeout(Time) override {}
  uint64_t window() const override { return window_.whole(); }
  bool at_least() const override { return window_.at_least(); }

 private:
  void congestion(Time now);
  void begin_epoch(Time now);
  double cubic(double seconds) const;  // the window so long after the epoch began
  void avoid(const AckSample& sample);

  Window window_;
  Rounds rounds_;
  const double segment_;
  bool slow_start_ = true;
  double most_ = 0;    // the window around which growth is flat
  double before_ = 0;  // the window at the last congestion event
  // The epoch: since the window was last reduced.
  bool epoch_ = false;
  Time began_;
  Time last_ack_;
  double flat_after_ = 0;  // seconds: the RFC's K
  double reno_ = 0;        // what Reno's window would be
};

}  // namespace weft
