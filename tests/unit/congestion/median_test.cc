// SPDX-License-Identifier: Apache-2.0
// NSCC on the median of the paths: what one path says, what most say, what is forgotten.
#include <gtest/gtest.h>

#include "tests/unit/congestion/feed.h"

namespace weft {
namespace {

constexpr Duration kBase = microseconds(100);
constexpr PathIndex kPaths = 9;

// A round in which every path carries its part of the window, the first `slow` of them with
// `queue`.
void round(Feed& feed, PathIndex slow, Duration queue) {
  const uint64_t bytes = feed.law->window() / kPaths;
  for (PathIndex path = 0; path < kPaths; ++path) {
    feed.now = feed.now + kBase / kPaths;
    const Duration met = path < slow ? queue : Duration{0};
    feed.law->on_ack({feed.now, bytes, kBase + met, met, path < slow, path});
  }
}

double window_after(const char* name, PathIndex slow, int rounds) {
  Feed feed(name, kBase);
  for (int i = 0; i < 5; ++i) round(feed, 0, {});
  for (int i = 0; i < rounds; ++i) round(feed, slow, feed.target() * 3);
  return feed.window();
}

TEST(Median, SomeSlowPathsDoNotMoveTheWindow) {
  const double quiet = window_after("mnscc", 0, 60);
  EXPECT_NEAR(window_after("mnscc", 2, 60) / quiet, 1, 0.05);
  EXPECT_NEAR(window_after("mnscc", 4, 60) / quiet, 1, 0.05);
  // Not for want of a reason: who goes by each sample shrinks.
  EXPECT_NEAR(window_after("nscc", 0, 60) / quiet, 1, 0.05);
  EXPECT_LT(window_after("nscc", 4, 60), quiet * 0.8);
}

TEST(Median, MostPathsSlowShrinkIt) {
  EXPECT_LT(window_after("mnscc", 5, 60), window_after("mnscc", 4, 60) * 0.7);
  EXPECT_NEAR(window_after("mnscc", kPaths, 60) / window_after("nscc", kPaths, 60), 1, 0.05);
}

// Marks are a matter of the majority too: below the target they keep the window from growing.
TEST(Median, AMarkCountsWhenMostPathsCarryOne) {
  const auto growth = [](PathIndex marked) {
    Feed feed("mnscc", kBase);
    double before = 0;
    for (int i = 0; i < 20; ++i) {
      if (i == 4) before = feed.window();
      round(feed, marked, feed.target() / 4);
    }
    return feed.window() - before;
  };
  EXPECT_NEAR(growth(4), growth(0), growth(0) * 0.05);
  EXPECT_LT(growth(5), growth(0) / 2);
}

TEST(Median, WhatAPathSaidLongAgoIsForgotten) {
  Feed feed("mnscc", kBase);
  feed.round(Duration{0});
  // Eight paths were slow and are avoided since; the ninth is not.
  for (PathIndex path = 0; path < 8; ++path)
    feed.law->on_ack({feed.now, 1, kBase + feed.target() * 2, feed.target() * 2, true, path});
  const double before = feed.window();
  for (int i = 0; i < 100; ++i) feed.round(Duration{0}, 0, 1, 8);
  EXPECT_GT(feed.window(), before * 1.2);
}

TEST(Median, LossesGoThrough) {
  Feed feed("mnscc", kBase);
  for (int i = 0; i < 40; ++i) feed.round(Duration{0});
  const double before = feed.window();
  feed.law->on_loss(feed.now, 50000);
  EXPECT_NEAR(before - feed.window(), 50000, 1);
}

}  // namespace
}  // namespace weft
