// SPDX-License-Identifier: Apache-2.0
// Recycled paths: what a way gives back is what it gets, on a small network in virtual time
// (ways.h), with oblivious spraying as the control that shows that the network tells them apart.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "multipath/path/selector.h"
#include "tests/unit/path/ways.h"

namespace weft {
namespace {

const std::vector<uint64_t> kSeeds = {1, 2, 3};

TEST(Reps, UnequalWaysCarryInProportionToTheirSpeed) {
  const std::vector<std::vector<int64_t>> cases = {{10, 20, 40}, {10, 10, 10, 40}};
  for (const std::vector<int64_t>& services : cases) {
    for (uint64_t seed : kSeeds) {
      SCOPED_TRACE(testing::Message() << services.size() << " ways, seed " << seed);
      WaysConfig config = even("reps", services.size(), 64, seed);
      double speeds = 0;
      for (size_t i = 0; i < services.size(); ++i) {
        config.ways[i].service = microseconds(services[i]);
        speeds += 1.0 / static_cast<double>(services[i]);
      }
      const Ways reps = settled(config);
      config.selector = "oblivious";
      const Ways oblivious = settled(config);
      for (size_t i = 0; i < services.size(); ++i) {
        const double fair = 1.0 / static_cast<double>(services[i]) / speeds;
        EXPECT_GT(reps.share(i), fair * 0.75) << "way " << i;
        EXPECT_LT(reps.share(i), fair * 1.35) << "way " << i;
      }
      // A network in which spraying does as well would prove nothing.
      const double slow = 1.0 / static_cast<double>(services.back()) / speeds;
      EXPECT_GT(oblivious.share(services.size() - 1), slow * 2);
      EXPECT_GT(static_cast<double>(reps.delivered()),
                1.7 * static_cast<double>(oblivious.delivered()));
      EXPECT_GT(reps.used(kLong), 0.75);
    }
  }
}

TEST(Reps, EqualWaysCarryTheSame) {
  for (uint64_t seed : kSeeds) {
    const Ways net = settled(even("reps", 4, 72, seed));
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(net.share(i), 0.25, 0.02) << "seed " << seed;
  }
}

TEST(Reps, AWayWithMarksFromASwitchGetsLess) {
  for (uint64_t seed : kSeeds) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    // Where the others have room; and where their queues are full, so that all are marked.
    WaysConfig room = even("reps", 4, 48, seed);
    room.ways[2].ecn = 0.2;
    EXPECT_LT(settled(room).share(2), 0.15);
    WaysConfig full = even("reps", 4, 64, seed);
    full.ways[2].ecn = 0.2;
    EXPECT_LT(settled(full).share(2), 0.20);
    full.selector = "oblivious";
    EXPECT_NEAR(settled(full).share(2), 0.25, 0.01);
  }
}

TEST(Reps, MarksOnAllWaysAreNoReasonToPreferOne) {
  for (uint64_t seed : kSeeds) {
    WaysConfig all = even("reps", 4, 64, seed);
    for (auto& way : all.ways) way.ecn = 0.5;
    const Ways net = settled(all);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(net.share(i), 0.25, 0.03) << "seed " << seed;
  }
}

TEST(Reps, AWayWhoseMarksEndGetsItsShareAgain) {
  for (uint64_t seed : kSeeds) {
    WaysConfig config = even("reps", 4, 64, seed);
    config.ways[2].ecn = 0.5;
    Ways net = settled(config);
    net.way(2).ecn = 0;
    net.run(kSettle);
    net.count_anew();
    net.run(kSettle);
    EXPECT_GT(net.share(2), 0.22) << "seed " << seed;
  }
}

TEST(Reps, ASilentWayGetsNextToNothingAfterItsTimeoutsAndComesBack) {
  for (uint64_t seed : kSeeds) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Ways net(even("reps", 4, 64, seed));
    net.run(kSettle);
    net.way(1).silent = true;
    net.run(Ways::kTimeout);  // until then nobody can know
    net.count_anew();
    // Its eight paths time out three times each, and exploring may lead there between freezes.
    net.run(milliseconds(60));
    EXPECT_LT(net.way(1).sent, 64u);
    EXPECT_EQ(net.dead(), 8);
    net.count_anew();
    net.run(kLong);
    EXPECT_EQ(net.way(1).sent, 0u) << "dead is dead";
    EXPECT_EQ(net.wrong(), 0u);
    net.way(1).silent = false;
    net.run(kSettle);
    EXPECT_EQ(net.dead(), 0);
    net.count_anew();
    net.run(kLong);
    EXPECT_GT(net.share(1), 0.2);
  }
}

// The control of the one above: who learns nothing pays for the silence until all paths are dead.
TEST(Oblivious, SendsIntoTheSilenceUntilEveryPathIsDead) {
  Ways net(even("oblivious", 4, 64, 1));
  net.run(kSettle);
  net.way(1).silent = true;
  net.run(Ways::kTimeout);
  net.count_anew();
  net.run(milliseconds(60));
  EXPECT_GT(net.way(1).sent, 500u);
  EXPECT_EQ(net.dead(), 8);
}

// What a time-out costs the ways that work: the three that are left carry on through the freeze.
// The ring may remember one way only, whose acks then all come back marked: without looking at who
// has answered since, nothing led out of it before the freeze was over (0.5 of the three ways).
TEST(Reps, WaysThatWorkCarryOnThroughTheFreeze) {
  for (uint64_t seed : kSeeds) {
    const WaysConfig config = even("reps", 4, 64, seed);
    Ways net(config);
    net.run(kSettle);
    net.way(1).silent = true;
    net.run(Ways::kTimeout);
    net.count_anew();
    net.run(milliseconds(30));
    EXPECT_GT(net.used(milliseconds(30)), 0.75 * 0.9) << "seed " << seed;
  }
}

// Where nothing is marked nothing is explored, so a way that came back has to be given a burst.
TEST(Reps, AWayThatComesBackIsFoundWhereNothingIsMarked) {
  for (uint64_t seed : kSeeds) {
    Ways net(even("reps", 4, 48, seed));
    net.run(kSettle);
    net.way(1).silent = true;
    net.run(milliseconds(62));
    net.way(1).silent = false;
    net.run(kSettle);
    EXPECT_EQ(net.dead(), 0);
    net.count_anew();
    net.run(kLong);
    EXPECT_GT(net.share(1), 0.1) << "seed " << seed;
  }
}

// The ring knows `known`, each answered `times`; the other paths were never heard of.
std::unique_ptr<Selector> taught(const std::vector<PathIndex>& known, int times) {
  auto selector = make_selector("reps", {64, 5, milliseconds(10)});
  for (int i = 0; i < times; ++i) {
    for (PathIndex path : known) selector->on_ack({path, 1.0, Mark::kNone});
  }
  return selector;
}

std::set<PathIndex> turns(Selector& selector, const PathMask& usable, Time now, uint32_t bursts,
                          int count) {
  std::set<PathIndex> seen;
  for (int i = 0; i < count; ++i) seen.insert(selector.next({usable, now, bursts}));
  return seen;
}

TEST(Reps, AfterATimeoutNothingNewIsExploredUntilTheFreezeIsOver) {
  const PathMask usable = all_of(64);
  const std::set<PathIndex> known = {3, 17, 40};
  auto selector = taught({3, 17, 40}, 2);
  const Time start{seconds(1).ns};
  selector->on_timeout(9, start);
  EXPECT_EQ(turns(*selector, usable, start, 64, 500), known);
  EXPECT_EQ(turns(*selector, usable, start + milliseconds(10) - nanoseconds(1), 64, 500), known);
  // Another one on the way makes it longer.
  selector->on_timeout(12, start + milliseconds(5));
  EXPECT_EQ(turns(*selector, usable, start + milliseconds(14), 64, 500), known);
  EXPECT_EQ(turns(*selector, usable, start + milliseconds(15), 64, 500).size(), 64u);
}

TEST(Reps, AFrozenSelectorForgetsThePathThatTimedOut) {
  auto selector = taught({3, 17, 40}, 2);
  const PathMask usable = all_of(64);
  turns(*selector, usable, Time{0}, 64, 6);  // all remembered paths have been used once
  selector->on_timeout(17, Time{0});
  EXPECT_EQ(turns(*selector, usable, Time{0}, 64, 500), (std::set<PathIndex>{3, 40}));
}

// Fresh entries that cannot be used (here those of the path that timed out) are dropped; the turn
// must not explore for that while others are remembered.
TEST(Reps, AFrozenSelectorWithSpoiltFreshEntriesUsesRememberedOnes) {
  auto selector = taught({3, 40}, 2);
  const PathMask usable = all_of(64);
  turns(*selector, usable, Time{0}, 64, 4);
  selector->on_ack({17, 1.0, Mark::kNone});
  selector->on_timeout(17, Time{0});
  EXPECT_EQ(turns(*selector, usable, Time{0}, 64, 100), (std::set<PathIndex>{3, 40}));
  selector->on_ack({3, 1.0, Mark::kNone});
  EXPECT_EQ(turns(*selector, usable, Time{0}, 4, 100), (std::set<PathIndex>{3, 40}));
}

TEST(Reps, AFrozenSelectorThatRemembersNothingStillNamesAPath) {
  auto selector = taught({3}, 1);
  const PathMask usable = all_of(64);
  selector->on_timeout(3, Time{0});
  for (PathIndex path : turns(*selector, usable, Time{0}, 64, 500)) EXPECT_TRUE(usable.test(path));
}

TEST(Reps, WithFewBurstsInFlightItSpraysOverAll) {
  for (uint32_t bursts : {0u, 1u, 4u, 10u}) {
    auto selector = taught({3, 17}, 0);
    const PathMask usable = all_of(64);
    std::vector<int> count(64);
    for (int i = 0; i < 6400; ++i) {
      ++count[selector->next({usable, Time{i}, bursts})];
      selector->on_ack({3, 1.0, Mark::kNone});  // the only one that ever answers
    }
    for (int path = 0; path < 64; ++path)
      EXPECT_EQ(count[static_cast<size_t>(path)], 100) << path << ", bursts " << bursts;
  }
  // With many in flight the one that answers is it.
  auto selector = taught({3}, 1);
  const PathMask usable = all_of(64);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(selector->next({usable, Time{i}, 64}), 3);
    selector->on_ack({3, 1.0, Mark::kNone});
  }
}

TEST(Reps, PartsOfABurstAddUpToOne) {
  auto selector = taught({}, 0);
  const PathMask usable = all_of(64);
  for (int i = 0; i < 64 * 4; ++i) selector->on_ack({5, 0.25, Mark::kNone});
  // The ring holds half of them; what it gave away is gone.
  int recycled = 0;
  for (int i = 0; i < 32; ++i) recycled += selector->next({usable, Time{0}, 64}) == 5;
  EXPECT_EQ(recycled, 32);
  EXPECT_GT(turns(*selector, usable, Time{0}, 64, 64).size(), 60u);
}

}  // namespace
}  // namespace weft
