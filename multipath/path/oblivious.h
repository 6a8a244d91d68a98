// SPDX-License-Identifier: Apache-2.0
// Oblivious spraying: every path in turn, in an order that changes each lap.
//
// The order is a counter xor a random mask, a new mask each lap (Ultra Ethernet's oblivious load
// balancing): each lap visits every path once, and two connections do not march in step. It learns
// nothing.
#pragma once

#include "multipath/path/selector.h"
#include "transport/base/random.h"

namespace weft {

class ObliviousSelector final : public Selector {
 public:
  explicit ObliviousSelector(const SelectorConfig& config);
  std::string_view name() const override { return "oblivious"; }
  PathIndex next(const Turn& turn) override;
  void on_ack(const PathAnswer&) override {}
  void on_timeout(PathIndex, Time) override {}
  void on_alive(PathIndex, bool) override {}

 private:
  const uint32_t paths_;
  const uint32_t lap_;  // paths_ rounded up to a power of two
  Random random_;
  uint32_t counter_ = 0;
  uint32_t mask_ = 0;
};

}  // namespace weft
