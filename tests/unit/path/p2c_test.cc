// SPDX-License-Identifier: Apache-2.0
// Two choices: which wins, how often the slow one is tried, and what that is worth.
#include <gtest/gtest.h>

#include <vector>

#include "multipath/path/selector.h"
#include "tests/unit/path/ways.h"

namespace weft {
namespace {

constexpr int kPaths = 8;

// How often each path is named in so many turns, each answered by its own round trip.
std::vector<int> counts(Selector& selector, const std::vector<int64_t>& microseconds_of,
                        int turns) {
  const PathMask usable = all_of(static_cast<int>(microseconds_of.size()));
  std::vector<int> count(microseconds_of.size());
  for (int i = 0; i < turns; ++i) {
    const PathIndex path = selector.next({usable, Time{i}, 64});
    ++count[path];
    selector.on_ack({path, 1, Mark::kNone, microseconds(microseconds_of[path]), Time{i}});
  }
  return count;
}

TEST(P2c, ASlowPathIsTriedAgainAndGetsFarLess) {
  auto selector = make_selector("p2c", {kPaths, 1});
  const std::vector<int> count = counts(*selector, {100, 100, 100, 400, 100, 100, 100, 100}, 80000);
  EXPECT_LT(count[3], 4000);
  EXPECT_GT(count[3], 400) << "or it is never found to have become fast";
}

TEST(P2c, OfTwoTheFasterWins) {
  auto selector = make_selector("p2c", {2, 1});
  const std::vector<int> count = counts(*selector, {100, 300}, 10000);
  // Both draws fall on one path half of the time.
  EXPECT_GT(count[0], 6800);
  EXPECT_GT(count[1], 2400);
}

TEST(P2c, ASlowPathThatBecomesFastIsFound) {
  auto selector = make_selector("p2c", {kPaths, 1});
  counts(*selector, {100, 100, 100, 1000, 100, 100, 100, 100}, 8000);
  const std::vector<int> count = counts(*selector, std::vector<int64_t>(kPaths, 100), 8000);
  EXPECT_GT(count[3], 700);
}

TEST(P2c, WithoutRoundTripsItSpraysAtRandom) {
  auto selector = make_selector("p2c", {kPaths, 1});
  const PathMask usable = all_of(kPaths);
  std::vector<int> count(kPaths);
  for (int i = 0; i < 8000; ++i) ++count[selector->next({usable, Time{i}, 64})];
  for (int n : count) EXPECT_NEAR(n, 1000, 150);
}

TEST(P2c, APathThatTimedOutGoesLast) {
  auto selector = make_selector("p2c", {kPaths, 1});
  counts(*selector, std::vector<int64_t>(kPaths, 100), 2000);
  selector->on_timeout(3, Time{});
  const PathMask usable = all_of(kPaths);
  int named = 0;
  for (int i = 0; i < 64; ++i) named += selector->next({usable, Time{i}, 64}) == 3;
  EXPECT_LT(named, 5);
}

TEST(P2c, SlowWaysCarryLessThanWhereAllGetTheSame) {
  for (uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    WaysConfig config = even("p2c", 4, 64, seed);
    config.ways[3].service = microseconds(40);
    const Ways net = settled(config);
    config.selector = "oblivious";
    const Ways control = settled(config);
    EXPECT_GT(control.share(3), 0.2);
    EXPECT_LT(net.share(3), 0.15);
    EXPECT_GT(static_cast<double>(net.delivered()), 1.4 * static_cast<double>(control.delivered()));
  }
}

}  // namespace
}  // namespace weft
