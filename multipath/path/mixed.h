// SPDX-License-Identifier: Apache-2.0
// Recycles as reps does, and explores as bitmap does: where nothing is to be recycled, paths that
// have lately been marked are passed over.
#pragma once

#include "multipath/path/bitmap.h"
#include "multipath/path/oblivious.h"
#include "multipath/path/recycled.h"
#include "multipath/path/selector.h"

namespace weft {

class MixedSelector final : public Selector {
 public:
  explicit MixedSelector(const SelectorConfig& config)
      : walk_(config), recycled_(config), bitmap_(config) {}
  std::string_view name() const override { return "mixed"; }
  PathIndex next(const Turn& turn) override {
    PathIndex path = 0;
    return recycled_.next(turn, walk_, &path) ? path : bitmap_.next(turn);
  }
  void on_ack(const PathAnswer& answer) override {
    recycled_.on_ack(answer);
    bitmap_.on_ack(answer);
  }
  void on_timeout(PathIndex path, Time now) override {
    recycled_.on_timeout(path, now);
    bitmap_.on_timeout(path, now);
  }
  void on_alive(PathIndex path, bool alive) override {
    recycled_.on_alive(path, alive);
    bitmap_.on_alive(path, alive);
  }

 private:
  ObliviousSelector walk_;  // while exploring is not wanted
  Recycled recycled_;
  BitmapSelector bitmap_;
};

}  // namespace weft
