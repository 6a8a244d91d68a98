// SPDX-License-Identifier: Apache-2.0
// DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257): shrinks by half of the fraction of bytes that
// came back marked, once an RTT.
//
// Slow start until the first mark or loss, then a segment an RTT. A mark is ECN where the fabric
// shows it; else a queue past the pipe's mark delay, which is such a threshold. A loss event
// halves.
#pragma once

#include "multipath/congestion/law.h"
#include "multipath/congestion/rounds.h"
#include "multipath/congestion/window.h"

namespace weft {

class DctcpLaw final : public Law {
 public:
  DctcpLaw(const LawConfig& config, const Pipe& pipe)
      : window_(config), rounds_(pipe), segment_(config.segment_bytes) {}
  std::string_view name() const override { return "dctcp"; }
  void on_ack(const AckSample& sample) override;
  void on_loss(Time now, uint64_t bytes) override;
  void on_timeout(Time) override {}
  uint64_t window() const override { return window_.whole(); }
  bool at_least() const override { return window_.at_least(); }

 private:
  void measure(const AckSample& sample);

  Window window_;
  Rounds rounds_;
  Seldom cuts_;
  const double segment_;
  bool slow_start_ = true;
  uint64_t acked_ = 0;  // in this round
  uint64_t marked_ = 0;
  double share_ = 1;  // that is marked, over the last rounds: the RFC's alpha
};

}  // namespace weft
