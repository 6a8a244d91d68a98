// SPDX-License-Identifier: Apache-2.0
// A window that never moves: the baseline, and right where the network cannot be congested by us.
#pragma once

#include <algorithm>

#include "multipath/congestion/law.h"

namespace weft {

class FixedLaw final : public Law {
 public:
  explicit FixedLaw(const LawConfig& config)
      : window_(std::max<uint64_t>(config.window_bytes, config.segment_bytes)) {}
  std::string_view name() const override { return "fixed"; }
  void on_ack(const AckSample&) override {}
  void on_loss(Time, uint64_t) override {}
  void on_timeout(Time) override {}
  uint64_t window() const override { return window_; }

 private:
  const uint64_t window_;
};

}  // namespace weft
