// SPDX-License-Identifier: Apache-2.0
// What every selector owes, whatever its idea: paths that can be used, the ways that work, no
// allocation, and the same run for the same seed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>

#include "multipath/path/selector.h"
#include "tests/unit/path/ways.h"
#include "transport/base/random.h"

namespace {
uint64_t allocations = 0;
}

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace weft {
namespace {

std::string name_of(const testing::TestParamInfo<const char*>& selector) { return selector.param; }

class EverySelector : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Selectors, EverySelector,
                         testing::Values("reps", "mixed", "bitmap", "oblivious", "p2c", "plb",
                                         "flowlet", "single"),
                         name_of);

// Those that spread over all ways at once.
class SpreadingSelector : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Selectors, SpreadingSelector,
                         testing::Values("reps", "mixed", "bitmap", "oblivious", "p2c"), name_of);

TEST_P(EverySelector, HasItsName) {
  const auto selector = make_selector(GetParam(), {4, 1});
  ASSERT_NE(selector, nullptr);
  EXPECT_EQ(selector->name(), GetParam());
}

// Whatever happens, in whatever order. `full`: paths are also out of use for a while, which only
// those must heed that spread; to stay on one and wait for it is right too.
void try_everything(const char* name, bool full) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const int paths = static_cast<int>(1 + random.below(seed % 4 == 0 ? kMaxPaths : 40));
    auto selector = make_selector(name, {paths, seed, milliseconds(1)});
    PathMask usable = all_of(paths);
    Time now{};
    const auto any = [&] {
      return static_cast<PathIndex>(random.below(static_cast<uint64_t>(paths)));
    };
    for (int step = 0; step < 3000; ++step) {
      now = now + microseconds(static_cast<int64_t>(random.below(200)));
      const PathIndex path = any();
      switch (random.below(8)) {
        case 0:
          usable.set(path, !usable.test(path));
          if (!full) selector->on_alive(path, usable.test(path));
          break;
        case 1: selector->on_timeout(path, now); break;
        case 2:
          if (full) selector->on_alive(path, random.chance(0.5));
          break;
        default:
          selector->on_ack({path, static_cast<double>(random.below(300)) / 100,
                            static_cast<Mark>(random.below(3)),
                            microseconds(static_cast<int64_t>(random.below(500))), now});
      }
      if (!usable.any()) {
        const PathIndex last = any();
        usable.set(last, true);
        if (!full) selector->on_alive(last, true);
      }
      const auto bursts = static_cast<uint32_t>(random.below(60));
      PathIndex named = selector->next({usable, now, bursts});
      // Who draws by lot may need some turns where few of many are left.
      for (int turn = 0; turn < 100 && !full && !usable.test(named); ++turn)
        named = selector->next({usable, now, bursts});
      ASSERT_LT(named, paths) << "seed " << seed << " step " << step;
      ASSERT_TRUE(usable.test(named)) << "seed " << seed << " step " << step;
    }
  }
}

TEST_P(EverySelector, NeverStaysOnADeadPath) { try_everything(GetParam(), false); }

TEST_P(SpreadingSelector, NeverNamesAPathThatIsNotUsable) { try_everything(GetParam(), true); }

TEST_P(SpreadingSelector, EqualWaysCarryTheSame) {
  for (uint64_t seed : {1, 2, 3}) {
    const Ways net = settled(even(GetParam(), 4, 72, seed));
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(net.share(i), 0.25, 0.03) << "seed " << seed;
    EXPECT_GT(net.used(kLong), 0.85);
  }
}

TEST_P(SpreadingSelector, ASilentWayIsLeftToItsProbesAndComesBack) {
  for (uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Ways net(even(GetParam(), 4, 64, seed));
    net.run(kSettle);
    net.way(1).silent = true;
    net.run(milliseconds(250));
    EXPECT_EQ(net.dead(), 8);
    net.count_anew();
    net.run(kLong);
    EXPECT_EQ(net.way(1).sent, 0u) << "dead is dead";
    EXPECT_GT(net.used(kLong), 0.75 * 0.85);
    EXPECT_EQ(net.wrong(), 0u);
    net.way(1).silent = false;
    net.run(kSettle * 2);
    EXPECT_EQ(net.dead(), 0);
    net.count_anew();
    net.run(kLong);
    EXPECT_GT(net.share(1), 0.2);
  }
}

TEST_P(EverySelector, AllocatesNothingOnTheDataPath) {
  auto selector = make_selector(GetParam(), {kMaxPaths, 1, milliseconds(1)});
  const PathMask usable = all_of(kMaxPaths);
  Random random(3);
  Time now{};
  const uint64_t before = allocations;
  for (int i = 0; i < 20000; ++i) {
    now = now + microseconds(static_cast<int64_t>(random.below(50)));
    const PathIndex path = selector->next({usable, now, 64});
    selector->on_ack({path, 0.7, static_cast<Mark>(random.below(3)), microseconds(100), now});
    if (i % 100 == 0) selector->on_timeout(path, now);
    if (i % 1000 == 0) selector->on_alive(path, i % 2000 == 0);
  }
  EXPECT_EQ(allocations, before);
  auto counted = std::make_unique<int>(1);
  EXPECT_GT(allocations, before) << "the count counts";
}

TEST_P(EverySelector, TheSameSeedIsTheSameRun) {
  const auto run = [](uint64_t seed) {
    Ways net(even(GetParam(), 4, 64, seed));
    net.run(kSettle);
    return std::pair{net.delivered(), net.share(0)};
  };
  EXPECT_EQ(run(7), run(7));
  int differ = 0;
  for (uint64_t seed = 8; seed < 16; ++seed) differ += run(seed) != run(7);
  EXPECT_GT(differ, 0);
}

}  // namespace
}  // namespace weft
