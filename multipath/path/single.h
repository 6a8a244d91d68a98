// SPDX-License-Identifier: Apache-2.0
// One path for everything, drawn by lot, as a queue pair under ECMP has it: the baseline that a
// multipath transport is measured against. Only its death makes it choose another.
#pragma once

#include "multipath/path/drawn_path.h"
#include "multipath/path/selector.h"

namespace weft {

class SingleSelector final : public Selector {
 public:
  explicit SingleSelector(const SelectorConfig& config) : path_(config) {}
  std::string_view name() const override { return "single"; }
  PathIndex next(const Turn& turn) override { return path_.get(turn); }
  void on_ack(const PathAnswer&) override {}
  void on_timeout(PathIndex, Time) override {}
  void on_alive(PathIndex path, bool alive) override { path_.on_alive(path, alive); }

 private:
  DrawnPath path_;
};

}  // namespace weft
