// SPDX-License-Identifier: Apache-2.0
// The search for what a way carries: quick where all goes well, bounded where nothing does.
#include "multipath/endpoint/size_search.h"

#include <gtest/gtest.h>

#include <functional>

#include "transport/base/random.h"

namespace weft {
namespace {

constexpr Duration kLongest = milliseconds(1500);

// A network that returns what `carries` says of a way, at once; how long the search takes on it.
Duration search_over(const std::function<uint32_t(int way)>& carries, SizeSearch& search) {
  const Time start{0};
  Time now = start;
  for (int step = 0; step < 100 && !search.decided(now); ++step) {
    for (const auto& [way, size] : search.begin_round(now)) {
      if (size <= carries(way)) search.came_back(way, size, now);
    }
    if (search.decided(now)) break;
    if (search.next() > now) {
      now = search.next();
    } else {
      EXPECT_FALSE(search.begin_round(now).empty()) << "it would spin";
    }
  }
  EXPECT_TRUE(search.decided(now)) << "it never ends";
  return now - start;
}

Duration search_over(uint32_t carries, SizeSearch& search) {
  return search_over(std::function<uint32_t(int)>([=](int) { return carries; }), search);
}

TEST(SizeSearch, EndsWithTheFirstRoundWhereTheWayCarriesAll) {
  for (const uint32_t largest : {8832u, 1408u, 1280u}) {
    SizeSearch search(largest);
    EXPECT_TRUE(search.worthwhile());
    EXPECT_EQ(search_over(largest, search), Duration{});
    EXPECT_EQ(search.answer(), largest);
  }
}

TEST(SizeSearch, FindsTheLargestThatComesBack) {
  for (const auto& [carries, answer] :
       {std::pair{8831u, 8704u}, {5000u, 4096u}, {1408u, 1408u}, {1300u, 1280u}, {1200u, 1152u}}) {
    SizeSearch search(8832);
    EXPECT_LE(search_over(carries, search), milliseconds(200));
    EXPECT_EQ(search.answer(), answer);
  }
}

TEST(SizeSearch, HasNoAnswerWhereNothingComesBackAndDoesNotWaitForOne) {
  SizeSearch search(8832);
  EXPECT_LE(search_over(100, search), kLongest);
  EXPECT_EQ(search.answer(), 0u);
}

TEST(SizeSearch, FindsAWayThatLivesAmongManyThatDoNot) {
  for (int living = 0; living < SizeSearch::kMostWays; ++living) {
    SizeSearch search(1408);
    const Duration took = search_over([&](int way) { return way == living ? 9000u : 0u; }, search);
    EXPECT_EQ(search.answer(), 1408u) << "only way " << living << " lives";
    EXPECT_LE(took, living < 62 ? milliseconds(200) : kLongest) << "only way " << living;
  }
}

TEST(SizeSearch, ADeadWaySaysNothingOfSizes) {
  // Only small packets cross way 20; nothing crosses others. That is an answer, and a late one.
  SizeSearch search(8832);
  const Duration took = search_over([](int way) { return way == 20 ? 1300u : 0u; }, search);
  EXPECT_EQ(search.answer(), 1280u);
  EXPECT_GE(took, milliseconds(150)) << "one living way was to be asked several times";
}

// Chances of the ways of one search, with three spines of four dead there and back. Ways share
// ports as path_probe.h has it.
TEST(SizeSearch, WithThreeOfFourSpinesDeadItHasAnAnswer) {
  int without = 0;
  constexpr int kSeeds = 20000;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    bool there[40], any = false;
    for (bool& lives : there) lives = random.below(4) == 0;
    for (int way = 0; way < SizeSearch::kMostWays; ++way) {
      any |= random.below(4) == 0 && there[way % 40];
    }
    without += !any;
  }
  EXPECT_LE(without, kSeeds / 1000) << "searches that had no living way";
}

TEST(SizeSearch, BelievesOnlyWhatItAskedFor) {
  SizeSearch search(1408);
  (void)search.begin_round(Time{0});
  search.came_back(0, 57344, Time{0});
  search.came_back(0, 7, Time{0});
  search.came_back(7, 1408, Time{0});
  search.came_back(-1, 1408, Time{0});
  EXPECT_EQ(search.answer(), 0u);
  EXPECT_FALSE(search.decided(Time{0}));
}

TEST(SizeSearch, DoesNotAskAgainForWhatIsKnown) {
  SizeSearch search(1408);
  EXPECT_EQ(search.begin_round(Time{0}).size(), 2 * 3u);
  EXPECT_TRUE(search.begin_round(Time{0}).empty()) << "before it is due";
  search.came_back(1, 1280, Time{0});
  const auto again = search.begin_round(search.next());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].segment, 1408u);
  EXPECT_EQ(again[0].way, 1) << "the other is not known to live";
}

TEST(SizeSearch, OfTheSmallestThereIsNothingToFind) {
  EXPECT_FALSE(SizeSearch(SizeSearch::kSmallest).worthwhile());
}

}  // namespace
}  // namespace weft
