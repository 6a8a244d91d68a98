// SPDX-License-Identifier: Apache-2.0
// Path state and the oblivious selector.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "multipath/path/copy_ring.h"
#include "multipath/path/path.h"
#include "multipath/path/rtt.h"
#include "multipath/path/selector.h"
#include "tests/unit/path/ways.h"
#include "transport/base/random.h"

namespace weft {
namespace {

TEST(Oblivious, VisitsEveryPathOnceALap) {
  for (int paths : {1, 2, 3, 8, 31, 32, 33, 100, 256}) {
    auto selector = make_selector("oblivious", {paths, 7});
    ASSERT_NE(selector, nullptr);
    const PathMask usable = all_of(paths);
    for (int lap = 0; lap < 5; ++lap) {
      std::set<PathIndex> seen;
      for (int i = 0; i < paths; ++i) seen.insert(selector->next({usable, Time{}, 0}));
      EXPECT_EQ(seen.size(), static_cast<size_t>(paths)) << paths << " paths, lap " << lap;
    }
  }
}

TEST(Oblivious, NeverNamesAPathThatIsNotUsable) {
  auto selector = make_selector("oblivious", {32, 3});
  PathMask usable;
  usable.set(5, true);
  usable.set(31, true);
  for (int i = 0; i < 1000; ++i) {
    const PathIndex p = selector->next({usable, Time{}, 0});
    EXPECT_TRUE(p == 5 || p == 31) << p;
  }
}

TEST(Oblivious, TwoConnectionsDoNotMarchInStep) {
  auto a = make_selector("oblivious", {32, 1});
  auto b = make_selector("oblivious", {32, 2});
  const PathMask everything = all_of(32);
  int equal = 0;
  for (int i = 0; i < 320; ++i)
    equal += a->next({everything, Time{}, 0}) == b->next({everything, Time{}, 0});
  EXPECT_LT(equal, 160);
}

TEST(Selectors, AnUnknownNameIsNoSelector) {
  EXPECT_EQ(make_selector("nonsense", {4, 1}), nullptr);
}

TEST(Rtt, ConvergesOnWhatItSees) {
  RttEstimator rtt;
  for (int i = 0; i < 100; ++i) rtt.add(microseconds(50), false);
  EXPECT_EQ(rtt.smoothed(), microseconds(50));
  EXPECT_EQ(rtt.minimum(), microseconds(50));
  EXPECT_LT(rtt.variation(), microseconds(1));
}

TEST(Rtt, AnUpperBoundNeverRaisesTheEstimate) {
  RttEstimator rtt;
  rtt.add(microseconds(50), false);
  for (int i = 0; i < 100; ++i) rtt.add(milliseconds(5), true);
  EXPECT_EQ(rtt.smoothed(), microseconds(50));
  rtt.add(microseconds(40), true);
  EXPECT_LT(rtt.smoothed(), microseconds(50));
}

TEST(Rtt, TheRecentMaximumIsForgottenSlowly) {
  RttEstimator rtt;
  rtt.add(microseconds(10), false);
  rtt.add(microseconds(500), false);
  rtt.add(microseconds(10), false);
  EXPECT_GT(rtt.recent_maximum(), microseconds(400));
  for (int i = 0; i < 1000; ++i) rtt.add(microseconds(10), false);
  EXPECT_LT(rtt.recent_maximum(), microseconds(12));
}

// Who waits for `likely` is seldom wrong, and does not wait for long.
TEST(Rtt, LikelyIsLongerThanNearlyAllRoundTrips) {
  for (int64_t jitter : {1, 20, 400}) {
    SCOPED_TRACE(testing::Message() << "jitter of " << jitter << " us, seed 11");
    Random random(11);
    RttEstimator rtt;
    int longer = 0;
    Duration longest{};
    for (int i = 0; i < 20000; ++i) {
      const Duration sample =
          microseconds(50) +
          nanoseconds(static_cast<int64_t>(random.below(static_cast<uint64_t>(jitter) * 1000)));
      if (i > 0) longer += sample > rtt.likely();
      rtt.add(sample, false);
      if (i > 100) longest = std::max(longest, rtt.likely());
    }
    EXPECT_LT(longer, 400) << "2 in 100";
    EXPECT_LT(longest, (microseconds(50) + microseconds(jitter)) * 3);
  }
}

TEST(Rtt, LikelyFollowsALongerWayAndIgnoresUpperBounds) {
  RttEstimator rtt;
  rtt.add(microseconds(50), false);
  EXPECT_GT(rtt.likely(), microseconds(50)) << "one sample is no certainty";
  for (int i = 0; i < 100; ++i) rtt.add(microseconds(50), false);
  const Duration before = rtt.likely();
  EXPECT_LT(before, microseconds(52));
  for (int i = 0; i < 100; ++i) rtt.add(milliseconds(5), true);
  EXPECT_EQ(rtt.likely(), before);
  rtt.add(microseconds(500), false);
  EXPECT_GT(rtt.likely(), microseconds(500)) << "the next as long as this is no surprise";
}

TEST(CopyRing, HoldsACopyUntilItIsSettledAndItsSourceFree) {
  CopyRing ring;
  const uint64_t first = ring.next();
  Copy& a = ring.append();
  a.settled = false;
  a.source_in_use = true;
  Copy& b = ring.append();
  b.settled = true;
  ring.trim();
  EXPECT_EQ(ring.oldest(), first);
  ring.at(first).settled = true;
  ring.trim();
  EXPECT_EQ(ring.oldest(), first) << "its source may still be read";
  ring.at(first).source_in_use = false;
  ring.trim();
  EXPECT_TRUE(ring.empty());
  EXPECT_FALSE(ring.holds(first));
  EXPECT_EQ(ring.next(), first + 2) << "numbers are never reused";
}

TEST(CopyRing, IsFullAtItsCapacityAndThePathThenNotUsable) {
  Path path;
  for (uint64_t i = 0; i < CopyRing::kCapacity; ++i) {
    ASSERT_TRUE(path.usable());
    path.copies.append().settled = false;
  }
  EXPECT_TRUE(path.copies.full());
  EXPECT_FALSE(path.usable());
}

}  // namespace
}  // namespace weft
