// SPDX-License-Identifier: Apache-2.0
// TIMELY's thresholds, its gradient, and the distance that the patch adds.
#include <gtest/gtest.h>

#include "tests/unit/congestion/feed.h"

namespace weft {
namespace {

// Of 1 ms and a target of as much: the thresholds are round trips of 2 and 20 ms.
constexpr Duration kBase = milliseconds(1);
constexpr Duration kLow = milliseconds(2);

Duration queue_of(Duration rtt) { return rtt - kBase; }

TEST(Timely, BelowTheLowerThresholdItGrowsAndAfterFiveRoundsFaster) {
  Feed feed("timely", kBase);
  feed.round(Duration{0});
  const auto growth = [&feed](int rounds) {
    const double before = feed.window();
    for (int i = 0; i < rounds; ++i) feed.round(Duration{0});
    return (feed.window() - before) / rounds;
  };
  const double slow = growth(3);
  growth(3);
  const double fast = growth(20);
  EXPECT_GT(slow, 0.005 * 316e3);
  EXPECT_NEAR(fast / slow, 5, 0.5);
}

// What is left of a window in `rounds` at round trips that grow by `more` each.
double left(Duration first, Duration more, int rounds) {
  Feed feed("timely", kBase);
  feed.round(queue_of(first));
  const double before = feed.window();
  for (int i = 0; i < rounds; ++i) feed.round(queue_of(first + more * i));
  return feed.window() / before;
}

TEST(Timely, BetweenTheThresholdsARisingRoundTripCutsMore) {
  const double level = left(kLow * 3, Duration{0}, 10);
  const double rising = left(kLow * 3, microseconds(300), 10);
  const double falling = left(kLow * 3, microseconds(-300), 10);
  EXPECT_LT(level, 0.95);
  EXPECT_LT(rising, level - 0.03);
  EXPECT_GT(falling, level + 0.03);
}

// The patch: with a level round trip the distance decides, so there is one point to settle at.
TEST(Timely, ALevelRoundTripCutsByItsDistance) {
  EXPECT_GT(left(kLow * 11 / 10, Duration{0}, 10), 1.0);
  EXPECT_LT(left(kLow * 4, Duration{0}, 10), left(kLow * 2, Duration{0}, 10) - 0.05);
}

TEST(Timely, AboveTheUpperThresholdItCutsAtOnce) {
  // 1 - 0.8 * (1 - 20/40), a round.
  EXPECT_NEAR(left(kLow * 20, Duration{0}, 1), 0.6, 0.02);
  EXPECT_GT(left(kLow * 9, Duration{0}, 1), 0.95);
}

TEST(Timely, MarksAreNotWhatItGoesBy) {
  const auto window = [](double marked) {
    Feed feed("timely", kBase);
    for (int i = 0; i < 20; ++i) feed.round(microseconds(100), marked);
    return feed.window();
  };
  EXPECT_EQ(window(0), window(1));
}

}  // namespace
}  // namespace weft
