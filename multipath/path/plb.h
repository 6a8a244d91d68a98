// SPDX-License-Identifier: Apache-2.0
// Protective load balancing (PLB, Qureshi et al., SIGCOMM 2022): one path, until it has been
// congested for a while; then another by lot.
//
// A round is a smoothed round trip. It is congested when more than half of what came back in it was
// marked; after three such rounds in a row, or a time-out, the next burst takes another path. What
// comes back on paths that were left counts no more.
#pragma once

#include "multipath/path/drawn_path.h"
#include "multipath/path/rtt.h"
#include "multipath/path/selector.h"

namespace weft {

class PlbSelector final : public Selector {
 public:
  explicit PlbSelector(const SelectorConfig& config) : path_(config) {}
  std::string_view name() const override { return "plb"; }
  PathIndex next(const Turn& turn) override;
  void on_ack(const PathAnswer& answer) override;
  void on_timeout(PathIndex path, Time now) override;
  void on_alive(PathIndex path, bool alive) override;

 private:
  void begin_round(Time now);

  DrawnPath path_;
  bool leave_ = false;        // with the next burst
  int congested_rounds_ = 0;  // in a row
  RttEstimator rtt_;
  Time round_ends_{INT64_MIN};
  double bursts_ = 0;  // that came back in this round
  double marked_ = 0;  // of those
};

}  // namespace weft
