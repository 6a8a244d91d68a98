// SPDX-License-Identifier: Apache-2.0
// The search for what a way carries: quick where all goes well, bounded where nothing does.
#include "multipath/endpoint/size_search.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// A way that returns what is no larger than `carries`, at once; how long the search takes on it.
Duration search_over(uint32_t carries, SizeSearch& search) {
  const Time start{0};
  Time now = start;
  for (int step = 0; step < 100 && !search.decided(now); ++step) {
    for (const uint32_t size : search.begin_round(now)) {
      if (size <= carries) search.came_back(size);
    }
    if (search.decided(now)) break;
    EXPECT_GT(search.next(), now) << "it would spin";
    now = search.next();
  }
  EXPECT_TRUE(search.decided(now)) << "it never ends";
  return now - start;
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
  EXPECT_LE(search_over(100, search), milliseconds(1500));
  EXPECT_EQ(search.answer(), 0u);
}

TEST(SizeSearch, BelievesOnlyWhatItAskedFor) {
  SizeSearch search(1408);
  (void)search.begin_round(Time{0});
  search.came_back(57344);
  search.came_back(7);
  EXPECT_EQ(search.answer(), 0u);
  EXPECT_FALSE(search.decided(Time{0}));
}

TEST(SizeSearch, DoesNotAskAgainForWhatIsKnown) {
  SizeSearch search(1408);
  EXPECT_EQ(search.begin_round(Time{0}).size(), 3u);
  EXPECT_TRUE(search.begin_round(Time{0}).empty()) << "before it is due";
  search.came_back(1280);
  const auto again = search.begin_round(search.next());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0], 1408u);
}

TEST(SizeSearch, OfTheSmallestThereIsNothingToFind) {
  EXPECT_FALSE(SizeSearch(SizeSearch::kSmallest).worthwhile());
}

}  // namespace
}  // namespace weft
