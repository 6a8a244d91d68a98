// SPDX-License-Identifier: Apache-2.0
// Swift's target, its step below and its cut above.
#include <gtest/gtest.h>

#include "tests/unit/congestion/bottleneck.h"
#include "tests/unit/congestion/feed.h"
#include "tests/unit/congestion/networks.h"

namespace weft {
namespace {

constexpr int kRounds = 20;

TEST(Swift, GrowsByAStepARoundTripWhateverIsMissing) {
  const auto growth = [](Duration queue) {
    Feed feed("swift", milliseconds(1));
    feed.round(queue);  // opens the window
    const double before = feed.window();
    for (int i = 0; i < kRounds; ++i) feed.round(queue);
    return (feed.window() - before) / kRounds;
  };
  // 4160 / 150000 of the mean of 1 MB and 100 KB.
  EXPECT_NEAR(growth(Duration{0}), 0.02773 * 316e3, 500);
  EXPECT_NEAR(growth(Duration{0}), growth(microseconds(500)), 500);
}

TEST(Swift, ShrinksByTheExcessOnceARoundTripAndByHalfAtMost) {
  const auto left = [](Duration queue) {
    Feed feed("swift", milliseconds(1));
    feed.round(Duration{0});
    const double before = feed.window();
    feed.round(queue);
    return feed.window() / before;
  };
  const Duration target = Feed("swift", milliseconds(1)).target();
  // The target of a window of 1 MB is a little over that of the pipe.
  EXPECT_GT(left(target + microseconds(50)), 0.95);
  const double some = left(target * 3);  // 4 ms where something over 2 is aimed at
  EXPECT_LT(some, 0.75);
  EXPECT_GT(some, 0.58);
  EXPECT_LT(left(target * 2), left(target + microseconds(500)));
  EXPECT_NEAR(left(target * 100), 0.5, 0.001);
}

TEST(Swift, MarksAreNotWhatItGoesBy) {
  const auto window = [](double marked) {
    Feed feed("swift", milliseconds(1));
    for (int i = 0; i < kRounds; ++i) feed.round(microseconds(100), marked);
    return feed.window();
  };
  EXPECT_EQ(window(0), window(1));
}

// At one delay that both see, the small one grows and the large one shrinks.
TEST(Swift, ASmallWindowAimsHigher) {
  Feed small("swift", microseconds(100), 100 << 10);
  Feed large("swift", microseconds(100), 4u << 20);
  for (int i = 0; i < 2000; ++i) {
    large.round(Duration{0});
    small.round(Duration{0});
  }
  ASSERT_GT(large.window(), 1e6);
  for (int i = 0; i < 4; ++i) small.law->on_loss(small.now = small.now + milliseconds(1), 1);
  const Duration queue = small.target() * 3 / 2;
  const double small_before = small.window();
  const double large_before = large.window();
  for (int i = 0; i < 4; ++i) {
    small.round(queue);
    large.round(queue);
  }
  EXPECT_GT(small.window(), small_before);
  EXPECT_LT(large.window(), large_before);
}

TEST(Swift, KeepsTheQueueNearItsTarget) {
  for (const Network& net : networks()) {
    SCOPED_TRACE(net.name);
    BottleneckConfig config = net.config;
    config.name = "swift";
    Bottleneck link(config);
    link.add(false);
    link.run(net.settle);
    link.count_anew();
    link.run(net.settle);
    const double target = link.flow(0).pipe->target_delay().seconds();
    EXPECT_GT(link.mean_wait(0), target * 0.9);
    EXPECT_LT(link.mean_wait(0), target * 1.7);
    EXPECT_LT(link.flow(0).most_window, link.flow(0).least_window * 5 / 4);
  }
}

}  // namespace
}  // namespace weft
