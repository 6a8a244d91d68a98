// SPDX-License-Identifier: Apache-2.0
// Paths that are passed over, counted; and what mixed takes from whom.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "multipath/path/selector.h"
#include "tests/unit/path/ways.h"

namespace weft {
namespace {

constexpr int kPaths = 8;

// How often a path is named in so many turns; `bursts` in flight.
int turns_of(Selector& selector, PathIndex path, int turns, Time now = Time{},
             uint32_t bursts = 64) {
  const PathMask usable = all_of(kPaths);
  int count = 0;
  for (int i = 0; i < turns; ++i) count += selector.next({usable, now, bursts}) == path;
  return count;
}

// In how many turns a path is named again: a path that is passed over s times is named s times less
// in as many laps as there are.
class PassedOver : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Selectors, PassedOver, testing::Values("bitmap", "mixed"),
                         [](const auto& selector) { return std::string(selector.param); });

TEST_P(PassedOver, AMarkedBurstCostsATurn) {
  for (Mark mark : {Mark::kQueue, Mark::kEcn}) {
    for (int marks : {0, 1, 3, 10}) {
      auto selector = make_selector(GetParam(), {kPaths, 1});
      // A burst comes back in parts.
      for (int i = 0; i < 4 * marks; ++i) selector->on_ack({5, 0.25, mark});
      int passed = 0;
      for (int turns = 0; turns < 40 * kPaths; ++turns) passed += turns_of(*selector, 5, 1) == 0;
      EXPECT_NEAR(40 * kPaths - passed, 40 - marks + marks / (kPaths - 1), 1) << marks;
    }
  }
}

TEST_P(PassedOver, ATimeoutCostsFifteenTurnsAndNoPathLosesMore) {
  for (int timeouts : {1, 5}) {
    auto selector = make_selector(GetParam(), {kPaths, 1, Duration{0}});
    selector->on_ack({5, 3, Mark::kEcn});
    for (int i = 0; i < timeouts; ++i) selector->on_timeout(5, Time{});
    EXPECT_EQ(turns_of(*selector, 5, 15 * (kPaths - 1), Time{1}), 0);
    EXPECT_GT(turns_of(*selector, 5, 2 * kPaths, Time{1}), 0);
  }
}

TEST_P(PassedOver, WhatComesBackAliveIsNotPassedOver) {
  auto selector = make_selector(GetParam(), {kPaths, 1, Duration{0}});
  selector->on_timeout(5, Time{});
  selector->on_alive(5, false);
  selector->on_alive(5, true);
  EXPECT_GT(turns_of(*selector, 5, 2 * kPaths, Time{1}), 0);
}

TEST(Bitmap, UnmarkedAnswersChangeNothing) {
  auto told = make_selector("bitmap", {kPaths, 1});
  auto plain = make_selector("oblivious", {kPaths, 1});
  const PathMask usable = all_of(kPaths);
  for (int i = 0; i < 1000; ++i) {
    const PathIndex path = told->next({usable, Time{}, 64});
    EXPECT_EQ(path, plain->next({usable, Time{}, 64}));
    told->on_ack({path, 1, Mark::kNone});
  }
}

TEST(Bitmap, AllMarkedAlikeIsSpraying) {
  auto selector = make_selector("bitmap", {kPaths, 1});
  const PathMask usable = all_of(kPaths);
  std::vector<int> count(kPaths);
  for (int i = 0; i < 8000; ++i) {
    const PathIndex path = selector->next({usable, Time{}, 64});
    ++count[path];
    selector->on_ack({path, 1, Mark::kQueue});
  }
  for (int n : count) EXPECT_NEAR(n, 1000, 100);
}

TEST_P(PassedOver, SlowWaysCarryLessThanWhereAllGetTheSame) {
  for (uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    WaysConfig config = even(GetParam(), 4, 64, seed);
    config.ways[3].service = microseconds(40);
    const Ways net = settled(config);
    config.selector = "oblivious";
    const Ways control = settled(config);
    EXPECT_GT(control.share(3), 0.2);
    EXPECT_LT(net.share(3), 0.15);
    EXPECT_GT(static_cast<double>(net.delivered()), 1.4 * static_cast<double>(control.delivered()));
  }
}

TEST_P(PassedOver, AWayWithMarksFromASwitchGetsLess) {
  for (uint64_t seed : {1, 2, 3}) {
    WaysConfig config = even(GetParam(), 4, 48, seed);
    config.ways[2].ecn = 0.5;
    EXPECT_LT(settled(config).share(2), 0.2) << "seed " << seed;
  }
}

TEST(Mixed, RecyclesWhatAnsweredUnmarked) {
  auto selector = make_selector("mixed", {kPaths, 1});
  const PathMask usable = all_of(kPaths);
  for (int i = 0; i < 100; ++i) {
    selector->on_ack({3, 1.0, Mark::kNone});
    EXPECT_EQ(selector->next({usable, Time{i}, 64}), 3);
  }
  // With few in flight it sprays, and passes over.
  for (int i = 0; i < 20; ++i) selector->on_ack({3, 1.0, Mark::kNone});
  EXPECT_EQ(turns_of(*selector, 3, 10 * kPaths, Time{}, 4), 10);
}

TEST(Mixed, AfterATimeoutNothingIsExploredUntilTheFreezeIsOver) {
  auto selector = make_selector("mixed", {kPaths, 1, milliseconds(10)});
  for (int i = 0; i < 4; ++i) selector->on_ack({3, 1.0, Mark::kNone});
  selector->on_timeout(5, Time{});
  EXPECT_EQ(turns_of(*selector, 3, 200), 200);
  EXPECT_EQ(turns_of(*selector, 3, 200, Time{} + milliseconds(9)), 200);
  EXPECT_LT(turns_of(*selector, 3, 200, Time{} + milliseconds(10)), 40);
}

TEST(Mixed, CarriesWhatRepsCarriesOverUnequalWays) {
  for (uint64_t seed : {1, 2, 3}) {
    WaysConfig config = even("mixed", 3, 64, seed);
    for (size_t i = 0; i < 3; ++i) config.ways[i].service = microseconds(10 << i);
    EXPECT_GT(settled(config).used(kLong), 0.75) << "seed " << seed;
    config.selector = "oblivious";
    EXPECT_LT(settled(config).used(kLong), 0.5);
  }
}

}  // namespace
}  // namespace weft
