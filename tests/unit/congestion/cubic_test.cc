// SPDX-License-Identifier: Apache-2.0
// CUBIC: the curve between two events, Reno where that is faster, and the events.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/congestion/feed.h"

namespace weft {
namespace {

constexpr Duration kNoQueue{};

// A long way, where the curve decides: 3000 segments over 50 ms, then a loss.
struct LongWay : Feed {
  LongWay() : Feed("cubic", milliseconds(50)) {
    while (window() < 12e6) round(kNoQueue);
    top = window();
    law->on_loss(now, kSegment);
    begin = now;
  }
  void until(double seconds) {
    while ((now - begin).seconds() < seconds) round(kNoQueue);
  }
  double top = 0;
  Time begin;
};

TEST(Cubic, ALossLeavesSevenTenths) {
  const LongWay way;
  EXPECT_NEAR(way.window() / way.top, 0.7, 0.001);
}

TEST(Cubic, GrowsFastThenIsFlatAroundTheOldWindowThenFastAgain) {
  LongWay way;
  const double flat = std::cbrt(way.top * 0.3 / (0.4 * Feed::kSegment));  // seconds
  ASSERT_GT(flat, 10);
  const double low = way.window();
  way.until(flat / 4);
  const double quarter = way.window();
  // 1 - (3/4)^3 of what was lost.
  EXPECT_NEAR((quarter - low) / (way.top - low), 0.578, 0.05);
  way.until(flat * 3 / 4);
  const double before = way.window();
  way.until(flat);
  EXPECT_NEAR(way.window() / way.top, 1, 0.01);
  EXPECT_LT(way.window() - before, (quarter - low) / 10) << "flat";
  way.until(flat * 5 / 4);
  EXPECT_LT(way.window() / way.top, 1.03) << "and flat behind it";
  way.until(flat * 2);
  EXPECT_NEAR(way.window() / way.top, 1.3, 0.05);
}

TEST(Cubic, OnAShortWayItGrowsAsRenoWould) {
  Feed feed("cubic");
  while (feed.window() < 4e6) feed.round(kNoQueue);
  feed.law->on_loss(feed.now, 1);
  const double before = feed.window();
  for (int i = 0; i < 50; ++i) feed.round(kNoQueue);
  // 0.53 segments a round trip: the RFC's alpha.
  EXPECT_NEAR((feed.window() - before) / Feed::kSegment, 50 * 0.529, 4);
}

TEST(Cubic, AMarkIsAnEventAndMarksOfOneRoundTripAreOne) {
  Feed feed("cubic", milliseconds(1));
  while (feed.window() < 4e6) feed.round(kNoQueue);
  const double before = feed.window();
  feed.round(kNoQueue, 1);
  EXPECT_NEAR(feed.window() / before, 0.7, 0.01);
}

// Who did not get as far as the last time aims lower: others have come.
TEST(Cubic, ASecondLossBelowTheOldWindowMakesTheNextPlateauLower) {
  LongWay once;
  LongWay twice;
  twice.until(1);
  const double second = twice.window();
  ASSERT_LT(second, twice.top);
  twice.law->on_loss(twice.now, 1);
  twice.begin = twice.now;
  const double plateau = second * 0.85;
  twice.until(std::cbrt((plateau - twice.window()) / (0.4 * Feed::kSegment)));
  EXPECT_NEAR(twice.window() / plateau, 1, 0.02);
}

TEST(Cubic, TimeInWhichTheWindowIsNotUsedDoesNotCount) {
  LongWay way;
  way.until(1);
  const double before = way.window();
  for (int i = 0; i < 1000; ++i) way.round(kNoQueue, 0, 0.1);
  EXPECT_LT(way.window(), before * 1.02);
  way.round(kNoQueue);
  way.round(kNoQueue);
  EXPECT_LT(way.window(), before * 1.05) << "nor is it made up for";
}

}  // namespace
}  // namespace weft
