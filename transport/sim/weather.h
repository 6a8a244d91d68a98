// SPDX-License-Identifier: Apache-2.0
// How long a packet takes on a path and whether the path is there at all: the configuration read as
// functions of path and time. Pure but for the generator it draws jitter from.
#pragma once

#include "transport/base/post.h"
#include "transport/base/random.h"
#include "transport/base/units.h"
#include "transport/sim/config.h"

namespace weft::sim {

class Weather {
 public:
  Weather(const SimConfig& config, Random& random) : config_(config), random_(random) {}

  // Uniform in [0, bound].
  Duration up_to(Duration bound) {
    return bound.ns <= 0
               ? Duration{0}
               : Duration{static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound.ns) + 1))};
  }

  // The path's delay one way at that time, without jitter.
  Duration base_delay(PathIndex path, Time at) const {
    Duration delay = config_.delay + config_.path_skew * path;
    Time since{INT64_MIN};
    for (const Rehash& r : config_.rehashes) {
      if (r.path == path && r.at <= at && r.at >= since) delay = r.delay, since = r.at;
    }
    return delay;
  }

  Duration one_way(PathIndex path, Time at) { return base_delay(path, at) + up_to(config_.jitter); }

  bool rehashed_between(PathIndex path, Time after, Time until) const {
    for (const Rehash& r : config_.rehashes) {
      if (r.path == path && after < r.at && r.at <= until) return true;
    }
    return false;
  }

  // When what this host sends on the path at `at` gets through again; `at` itself if it does so
  // now.
  Time open_from(int from_host, PathIndex path, Time at) const {
    for (bool moved = true; moved;) {  // each round passes the end of one hole for good
      moved = false;
      for (const Blackhole& b : config_.blackholes) {
        const bool here =
            (b.path < 0 || b.path == path) && (b.from_host < 0 || b.from_host == from_host);
        if (here && b.from <= at && at < b.until) at = b.until, moved = true;
      }
    }
    return at;
  }
  bool in_hole(int from_host, PathIndex path, Time at) const {
    return open_from(from_host, path, at) != at;
  }

  bool paused(int host, Time at) const {
    for (const Pause& p : config_.pauses) {
      if (p.host == host && p.from <= at && at < p.until) return true;
    }
    return false;
  }

 private:
  const SimConfig& config_;
  Random& random_;
};

}  // namespace weft::sim
