// SPDX-License-Identifier: Apache-2.0
// The race of dials: one at once, many soon, and never more than its bound.
#include "multipath/endpoint/dial_race.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "transport/base/random.h"

namespace weft {
namespace {

constexpr uint64_t kSeeds = 20000;

// When the first dial is made that lives; `chance`: one in so many does.
Duration first_success(uint64_t seed, uint64_t chance) {
  Random random(seed);
  DialRace race;
  race.begin(Time{0});
  for (Time now{0}; now < Time{0} + seconds(10); now = race.next()) {
    for (size_t left = race.due(now); left > 0; --left) {
      if (random.below(chance) == 0) return now - Time{0};
    }
  }
  return seconds(10);
}

std::vector<Duration> sorted_delays(uint64_t chance) {
  std::vector<Duration> delays;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) delays.push_back(first_success(seed, chance));
  std::sort(delays.begin(), delays.end());
  return delays;
}

TEST(DialRace, MakesOneDialWhereTheFirstIsAnswered) {
  DialRace race;
  EXPECT_FALSE(race.running());
  EXPECT_EQ(race.due(Time{0}), 0u);
  race.begin(Time{5});
  EXPECT_EQ(race.due(Time{5}), 1u);
  EXPECT_EQ(race.due(Time{5}), 0u) << "not before it is due again";
  EXPECT_GE(race.next(), Time{5} + milliseconds(10)) << "a round trip has time";
  race.end();
  EXPECT_EQ(race.due(Time{0} + seconds(100)), 0u);
}

TEST(DialRace, BeginsAgainWithOne) {
  DialRace race;
  race.begin(Time{0});
  for (int i = 0; i < 5; ++i) EXPECT_GT(race.due(race.next()), 0u);
  race.begin(race.next());
  EXPECT_EQ(race.due(race.next()), 1u);
}

TEST(DialRace, WavesGrowToABoundAndComeLessAndLessOften) {
  DialRace race;
  race.begin(Time{0});
  Time now{0};
  size_t before = 0;
  Duration gap{0};
  for (int wave = 0; wave < 40; ++wave) {
    const size_t dials = race.due(now);
    EXPECT_GE(dials, before);
    EXPECT_LE(dials, DialRace::kLargestWave);
    EXPECT_GE(race.next() - now, gap);
    before = dials, gap = race.next() - now, now = race.next();
  }
  EXPECT_EQ(before, DialRace::kLargestWave);
  EXPECT_GE(gap, milliseconds(300)) << "for peers that are far away";
}

TEST(DialRace, WithThreeOfFourSpinesDeadThereIsAStreamWithinSomeHundredMilliseconds) {
  const auto delays = sorted_delays(16);
  EXPECT_LE(delays[kSeeds / 2], milliseconds(100));
  EXPECT_LE(delays[kSeeds * 99 / 100], milliseconds(300));
  EXPECT_LE(delays[kSeeds - kSeeds / 1000], milliseconds(500));
  EXPECT_LE(delays.back(), seconds(2));
}

TEST(DialRace, WithHalfOfThemDeadSooner) {
  const auto delays = sorted_delays(4);
  EXPECT_LE(delays[kSeeds / 2], milliseconds(20));
  EXPECT_LE(delays[kSeeds - kSeeds / 1000], milliseconds(150));
}

}  // namespace
}  // namespace weft
