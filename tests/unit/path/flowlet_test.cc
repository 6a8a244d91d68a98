// SPDX-License-Identifier: Apache-2.0
// Flowlets: what is a gap, and where the next burst goes after one.
#include <gtest/gtest.h>

#include <set>

#include "multipath/path/selector.h"
#include "tests/unit/path/ways.h"

namespace weft {
namespace {

std::unique_ptr<Selector> with_rtt(Duration rtt) {
  auto selector = make_selector("flowlet", {32, 4});
  selector->on_ack({0, 1, Mark::kNone, rtt, Time{}});
  return selector;
}

// How many paths are seen in 200 bursts, one every `gap`.
size_t paths_seen(Selector& selector, Duration gap) {
  const PathMask usable = all_of(32);
  std::set<PathIndex> seen;
  for (int i = 1; i <= 200; ++i) seen.insert(selector.next({usable, Time{} + gap * i, 8}));
  return seen.size();
}

TEST(Flowlet, StaysWhileBurstsFollowEachOther) {
  EXPECT_EQ(paths_seen(*with_rtt(microseconds(100)), microseconds(50)), 1u);
  EXPECT_EQ(paths_seen(*with_rtt(milliseconds(10)), milliseconds(5)), 1u);
}

TEST(Flowlet, TakesAnotherPathByLotAfterAGapOfMoreThanHalfARoundTrip) {
  EXPECT_GT(paths_seen(*with_rtt(microseconds(100)), microseconds(51)), 28u);
  EXPECT_GT(paths_seen(*with_rtt(milliseconds(10)), microseconds(5001)), 28u);
}

TEST(Flowlet, EveryGapLeavesThePath) {
  auto selector = with_rtt(microseconds(100));
  const PathMask usable = all_of(32);
  Time now{};
  PathIndex before = selector->next({usable, now, 8});
  for (int i = 0; i < 100; ++i) {
    now = now + microseconds(60);
    const PathIndex path = selector->next({usable, now, 8});
    EXPECT_NE(path, before);
    before = path;
  }
}

TEST(Flowlet, MarksAreNotWhatItGoesBy) {
  auto selector = with_rtt(microseconds(100));
  const PathMask usable = all_of(32);
  Time now{};
  const PathIndex path = selector->next({usable, now, 8});
  for (int i = 0; i < 1000; ++i) {
    now = now + microseconds(10);
    selector->on_ack({path, 1, Mark::kEcn, microseconds(100), now});
    ASSERT_EQ(selector->next({usable, now, 8}), path);
  }
}

TEST(Flowlet, ATimeoutIsAGap) {
  auto selector = with_rtt(microseconds(100));
  const PathMask usable = all_of(32);
  const PathIndex path = selector->next({usable, Time{}, 8});
  selector->on_timeout(path, Time{});
  EXPECT_NE(selector->next({usable, Time{1}, 8}), path);
}

}  // namespace
}  // namespace weft
