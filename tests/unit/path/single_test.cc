// SPDX-License-Identifier: Apache-2.0
// The one path of `single`: kept until it dies, whatever else happens.
#include <gtest/gtest.h>

#include <set>

#include "multipath/path/selector.h"
#include "tests/unit/path/ways.h"

namespace weft {
namespace {

TEST(Single, KeepsItsPathWhateverIsSaidOfIt) {
  auto selector = make_selector("single", {32, 4});
  ASSERT_NE(selector, nullptr);
  const PathMask usable = all_of(32);
  const PathIndex path = selector->next({usable, Time{0}, 0});
  EXPECT_LT(path, 32);
  for (int i = 0; i < 1000; ++i) {
    selector->on_ack({path, 1.0, i % 2 ? Mark::kEcn : Mark::kQueue});
    selector->on_timeout(path, Time{i});
    selector->on_alive(static_cast<PathIndex>((path + 1 + i % 31) % 32), i % 3 == 0);
    ASSERT_EQ(selector->next({usable, Time{i}, 64}), path) << i;
  }
}

TEST(Single, WaitsForItsPathWhenThatIsMerelyFull) {
  auto selector = make_selector("single", {32, 4});
  PathMask usable = all_of(32);
  const PathIndex path = selector->next({usable, Time{0}, 0});
  usable.set(path, false);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(selector->next({usable, Time{i}, 64}), path);
  usable.set(path, true);
  EXPECT_EQ(selector->next({usable, Time{200}, 64}), path);
}

TEST(Single, TakesAnotherUsablePathWhenItsOwnDies) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    auto selector = make_selector("single", {8, seed});
    PathMask usable = all_of(8);
    std::set<PathIndex> used;
    // One after another dies, to the last.
    for (int left = 8; left > 0; --left) {
      const PathIndex path = selector->next({usable, Time{left}, 10});
      ASSERT_TRUE(usable.test(path));
      EXPECT_TRUE(used.insert(path).second);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(selector->next({usable, Time{left}, 10}), path);
      usable.set(path, false);
      selector->on_alive(path, false);
    }
    EXPECT_EQ(used.size(), 8u);
  }
}

// It draws by lot, so finding the only usable path of many takes some turns, in which bursts wait.
TEST(Single, FindsTheOnlyPathThatIsLeftOfMany) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto selector = make_selector("single", {kMaxPaths, seed});
    const PathMask everything = all_of(kMaxPaths);
    const PathIndex path = selector->next({everything, Time{0}, 0});
    const auto left = static_cast<PathIndex>((path + 100) % kMaxPaths);
    PathMask usable;
    usable.set(left, true);
    selector->on_alive(path, false);
    PathIndex named = path;
    for (int turn = 0; turn < 100 && named != left; ++turn)
      named = selector->next({usable, Time{turn}, 0});
    EXPECT_EQ(named, left) << "seed " << seed;
  }
}

TEST(Single, DoesNotGoBackWhenTheOldPathLivesAgain) {
  auto selector = make_selector("single", {32, 4});
  PathMask usable = all_of(32);
  const PathIndex old = selector->next({usable, Time{0}, 0});
  usable.set(old, false);
  selector->on_alive(old, false);
  const PathIndex path = selector->next({usable, Time{1}, 0});
  usable.set(old, true);
  selector->on_alive(old, true);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(selector->next({usable, Time{2}, 0}), path);
}

TEST(Single, ConnectionsDrawDifferentPaths) {
  const PathMask usable = all_of(32);
  std::set<PathIndex> drawn;
  for (uint64_t seed = 1; seed <= 200; ++seed)
    drawn.insert(make_selector("single", {32, seed})->next({usable, Time{0}, 0}));
  EXPECT_GT(drawn.size(), 28u);
}

// On the network of the other selectors: one way's speed, and another's after the first has died.
TEST(Single, CarriesWhatOneWayCarriesAndMovesOnWhenThatDies) {
  Ways net({"single", std::vector<Way>(4), 32, 64, 1});
  net.run(milliseconds(20));
  size_t way = 0;
  for (size_t i = 0; i < 4; ++i) way = net.share(i) > 0 ? i : way;
  EXPECT_EQ(net.share(way), 1.0);
  net.way(way).silent = true;
  // Draws may fall on the same way, each for three time-outs.
  net.run(milliseconds(400));
  net.count_anew();
  net.run(milliseconds(100));
  EXPECT_EQ(net.way(way).delivered, 0u);
  EXPECT_GT(static_cast<double>(net.delivered()), 0.95 * 10000 * Ways::kPackets);
  EXPECT_EQ(net.wrong(), 0u);
}

}  // namespace
}  // namespace weft
