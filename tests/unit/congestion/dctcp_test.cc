// SPDX-License-Identifier: Apache-2.0
// DCTCP: what share of marks costs what share of the window.
#include <gtest/gtest.h>

#include "tests/unit/congestion/bottleneck.h"
#include "tests/unit/congestion/feed.h"

namespace weft {
namespace {

constexpr Duration kNoQueue{};

TEST(Dctcp, DoublesEachRoundTripUntilTheFirstMark) {
  Feed feed("dctcp");
  const double first = feed.window();
  for (int i = 0; i < 4; ++i) feed.round(kNoQueue);
  EXPECT_GT(feed.window(), first * 12);
  feed.round(kNoQueue, 1);
  const double then = feed.window();
  for (int i = 0; i < 4; ++i) feed.round(kNoQueue);
  EXPECT_NEAR(feed.window() - then, 4 * Feed::kSegment, Feed::kSegment);
}

TEST(Dctcp, PersistentMarksCutEveryRoundTripEverMoreUpToHalfDownToTheLeast) {
  Feed feed("dctcp");
  for (int i = 0; i < 7; ++i) feed.round(kNoQueue);
  double before = feed.window();
  double left = 1;
  ASSERT_GT(before, 4e6);
  for (int i = 0; i < 7; ++i) {
    feed.round(kNoQueue, 1);
    EXPECT_LT(feed.window() / before, left) << "round " << i;
    left = feed.window() / before;
    before = feed.window();
    EXPECT_GT(left, 0.499);
    EXPECT_LT(left, 0.75);
  }
  for (int i = 0; i < 20; ++i) feed.round(kNoQueue, 1);
  EXPECT_TRUE(feed.law->at_least());
  EXPECT_EQ(feed.window(), 16 * Feed::kSegment);
}

// Of large segments, so that the window stays well above the least at any share.
TEST(Dctcp, CutsByHalfOfTheMarkedShare) {
  for (double share : {0.05, 0.15, 0.3}) {
    SCOPED_TRACE(share);
    Feed feed("dctcp", microseconds(100), 64u << 20, 256 << 10);
    for (int i = 0; i < 300; ++i) feed.round(kNoQueue, share);
    const double before = feed.window();
    feed.law->on_ack({feed.now + milliseconds(1), 1, feed.base, {}, true});
    EXPECT_FALSE(feed.law->at_least());
    EXPECT_NEAR(1 - feed.window() / before, share / 2, share * 0.1);
  }
}

TEST(Dctcp, WhoDoesNotUseTheWindowDoesNotWidenIt) {
  Feed feed("dctcp");
  for (int i = 0; i < 4; ++i) feed.round(kNoQueue);
  const double before = feed.window();
  for (int i = 0; i < 50; ++i) feed.round(kNoQueue, 0, 0.1);
  EXPECT_LT(feed.window(), before * 1.3);
  for (int i = 0; i < 3; ++i) feed.round(kNoQueue);
  EXPECT_GT(feed.window(), before * 2);
}

// A mark is a queue of 3 us here, of 25 packets: it stays about that long, at the link's full rate.
TEST(Dctcp, KeepsTheQueueAtTheMark) {
  BottleneckConfig config;
  config.name = "dctcp";
  config.bytes_per_second = 12.5e9;
  config.base_rtt = microseconds(12);
  config.pipe.port_bytes_per_second = 12.5e9;
  config.law = {4u << 20, 1408};
  Bottleneck link(config);
  link.add(false);
  link.run(milliseconds(20));
  link.count_anew();
  link.run(milliseconds(20));
  EXPECT_GT(link.utilisation(), 0.97);
  const double mark = link.flow(0).pipe->mark_delay().seconds();
  EXPECT_GT(link.mean_wait(0), mark * 0.5);
  EXPECT_LT(link.mean_wait(0), mark * 1.3);
}

}  // namespace
}  // namespace weft
