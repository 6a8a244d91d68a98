// SPDX-License-Identifier: Apache-2.0
// The power of two choices (Mitzenmacher 2001): two paths are drawn, the one with the shorter
// smoothed round trip is taken.
//
// A path that nothing is known of goes before all others. One that is passed over is heard of no
// more, so each time its round trip is forgiven a part of what it was longer: it is tried again
// after some dozen turns, and passed over again if it is slow still. A time-out is forgiven
// likewise, from a round trip that is longer than all others.
#pragma once

#include <vector>

#include "multipath/path/selector.h"
#include "transport/base/random.h"

namespace weft {

class P2cSelector final : public Selector {
 public:
  explicit P2cSelector(const SelectorConfig& config)
      : random_(config.seed), rtt_(static_cast<size_t>(config.paths)) {}
  std::string_view name() const override { return "p2c"; }
  PathIndex next(const Turn& turn) override;
  void on_ack(const PathAnswer& answer) override;
  void on_timeout(PathIndex path, Time now) override;
  void on_alive(PathIndex path, bool alive) override;

 private:
  PathIndex draw(const Turn& turn);

  Random random_;
  std::vector<Duration> rtt_;  // smoothed, by path; 0: not known
  Duration longest_{};         // of all samples
};

}  // namespace weft
