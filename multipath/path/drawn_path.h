// SPDX-License-Identifier: Apache-2.0
// One path, drawn by lot, for selectors that stay on one: kept until it dies or is left.
//
// A path whose ring is full is waited for; of a dead one another is drawn. Drawn, and not the next
// in line, so that many connections do not move as one.
#pragma once

#include "multipath/path/selector.h"
#include "transport/base/random.h"

namespace weft {

class DrawnPath {
 public:
  explicit DrawnPath(const SelectorConfig& config)
      : paths_(static_cast<uint64_t>(config.paths)), random_(config.seed), path_(draw()) {}

  PathIndex get() const { return path_; }
  PathIndex get(const Turn& turn) {
    for (int tries = 0; tries < kTries && lost_ && !turn.usable.test(path_); ++tries)
      path_ = draw();
    lost_ = lost_ && !turn.usable.test(path_);
    return path_;
  }
  // Takes another, if there is another that is usable.
  void leave(const Turn& turn) {
    for (int tries = 0; tries < kTries; ++tries) {
      const PathIndex path = draw();
      if (path == path_ || !turn.usable.test(path)) continue;
      path_ = path;
      lost_ = false;
      return;
    }
  }
  void on_alive(PathIndex path, bool alive) { lost_ = lost_ || (path == path_ && !alive); }

 private:
  static constexpr int kTries = 64;
  PathIndex draw() { return static_cast<PathIndex>(random_.below(paths_)); }

  const uint64_t paths_;
  Random random_;
  PathIndex path_;
  bool lost_ = false;
};

}  // namespace weft
