// SPDX-License-Identifier: Apache-2.0
// PLB: how long congestion has to last before the path is left, and that it then is.
#include <gtest/gtest.h>

#include <set>

#include "multipath/path/selector.h"
#include "tests/unit/path/ways.h"

namespace weft {
namespace {

constexpr Duration kRtt = microseconds(100);

struct OnePath {
  OnePath() : selector(make_selector("plb", {32, 4})) {
    // The first answer ends a round that never was.
    selector->on_ack({path(), 0, Mark::kNone, kRtt, now});
  }
  PathIndex path() { return selector->next({usable, now, 64}); }
  // A round of ten bursts, so many of them marked, on this path.
  void round(int marked, PathIndex path) {
    for (int i = 0; i < 10; ++i) {
      now = now + kRtt / 10;
      selector->on_ack({path, 1, i < marked ? Mark::kQueue : Mark::kNone, kRtt, now});
    }
  }
  std::unique_ptr<Selector> selector;
  PathMask usable = all_of(32);
  Time now{1000};
};

TEST(Plb, ThreeCongestedRoundsInARowAndThePathIsLeft) {
  OnePath one;
  const PathIndex first = one.path();
  one.round(6, first);
  one.round(10, first);
  EXPECT_EQ(one.path(), first) << "two are not three";
  one.round(6, first);
  const PathIndex second = one.path();
  EXPECT_NE(second, first);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(one.path(), second);
}

TEST(Plb, AQuietRoundBetweenThemBeginsTheCountAnew) {
  OnePath one;
  const PathIndex first = one.path();
  for (int i = 0; i < 20; ++i) {
    one.round(10, first);
    one.round(10, first);
    one.round(5, first);  // half is not more than half
    EXPECT_EQ(one.path(), first);
  }
}

TEST(Plb, WhatComesBackOnPathsThatWereLeftDoesNotCount) {
  OnePath one;
  const PathIndex first = one.path();
  for (int i = 0; i < 3; ++i) one.round(10, first);
  const PathIndex second = one.path();
  for (int i = 0; i < 20; ++i) one.round(10, first);
  EXPECT_EQ(one.path(), second);
  one.round(10, second);
  one.round(10, second);
  EXPECT_EQ(one.path(), second) << "it is given three rounds of its own";
  one.round(10, second);
  EXPECT_NE(one.path(), second);
}

TEST(Plb, ATimeoutIsEnough) {
  OnePath one;
  const PathIndex first = one.path();
  one.selector->on_timeout(static_cast<PathIndex>((first + 1) % 32), one.now);
  EXPECT_EQ(one.path(), first) << "another path's is none of its affair";
  one.selector->on_timeout(first, one.now);
  EXPECT_NE(one.path(), first);
}

TEST(Plb, WithNowhereElseToGoItStays) {
  OnePath one;
  const PathIndex first = one.path();
  one.usable = {};
  one.usable.set(first, true);
  for (int i = 0; i < 10; ++i) {
    one.round(10, first);
    EXPECT_EQ(one.path(), first);
  }
}

TEST(Plb, LeavesAWayWithMarksForOneWithout) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    WaysConfig config = even("plb", 2, 8, seed);
    config.ways[0].ecn = 0.9;
    const Ways net = settled(config);
    EXPECT_EQ(net.share(1), 1.0);
    config.selector = "single";
    if (settled(config).share(0) == 1.0) return;  // who stays would have been there
  }
  FAIL() << "no seed began on the way with marks";
}

}  // namespace
}  // namespace weft
