// SPDX-License-Identifier: Apache-2.0
// One path for everything, drawn by lot, as a queue pair under ECMP has it: the baseline that a
// multipath transport is measured against. Only its death makes it choose another.
#pragma once

#include "multipath/path/selector.h"
#include "transport/base/random.h"

namespace weft {

class SingleSelector final : public Selector {
 public:
  explicit SingleSelector(const SelectorConfig& config)
      : paths_(static_cast<uint64_t>(config.paths)), random_(config.seed) {
    path_ = draw();
  }
  std::string_view name() const override { return "single"; }
  PathIndex next(const Turn& turn) override {
    // Drawn again, and not the next in line, so that many connections do not move as one.
    for (int tries = 0; tries < kTries && lost_ && !turn.usable.test(path_); ++tries)
      path_ = draw();
    lost_ = lost_ && !turn.usable.test(path_);
    return path_;
  }
  void on_ack(const PathAnswer&) override {}
  void on_timeout(PathIndex, Time) override {}
  void on_alive(PathIndex path, bool alive) override { lost_ = lost_ || (path == path_ && !alive); }

 private:
  static constexpr int kTries = 64;
  PathIndex draw() { return static_cast<PathIndex>(random_.below(paths_)); }

  const uint64_t paths_;
  Random random_;
  PathIndex path_ = 0;
  bool lost_ = false;
};

}  // namespace weft
