// SPDX-License-Identifier: Apache-2.0
// FIFO matching with tags.
#include <gtest/gtest.h>

#include "multipath/connection/matcher.h"

namespace weft {
namespace {

wire::Grant grant(uint32_t number, std::initializer_list<std::pair<int32_t, uint64_t>> parts) {
  wire::Grant g;
  g.number = number;
  for (auto [tag, size] : parts) g.part[g.parts++] = {0, 0, 0, size, tag};
  return g;
}

TEST(Matcher, SendsGoToGrantsInOrder) {
  Matcher m;
  Matcher::Match match;
  EXPECT_EQ(m.match(0, 10, &match), Matcher::Answer::kNotYet);
  m.add(grant(0, {{0, 100}}));
  m.add(grant(1, {{0, 100}}));
  ASSERT_EQ(m.match(0, 10, &match), Matcher::Answer::kMatched);
  EXPECT_EQ(match.number, 0u);
  ASSERT_EQ(m.match(0, 10, &match), Matcher::Answer::kMatched);
  EXPECT_EQ(match.number, 1u);
  EXPECT_EQ(m.match(0, 10, &match), Matcher::Answer::kNotYet);
}

TEST(Matcher, ATagThatTheHeadLacksWaitsEvenIfALaterGrantHasIt) {
  Matcher m;
  Matcher::Match match;
  m.add(grant(0, {{1, 100}}));
  m.add(grant(1, {{2, 100}}));
  EXPECT_EQ(m.match(2, 10, &match), Matcher::Answer::kNotYet);
  ASSERT_EQ(m.match(1, 10, &match), Matcher::Answer::kMatched);
  ASSERT_EQ(m.match(2, 10, &match), Matcher::Answer::kMatched);
  EXPECT_EQ(match.number, 1u);
}

TEST(Matcher, RepeatedTagsFillTheirPartsInOrder) {
  Matcher m;
  Matcher::Match match;
  m.add(grant(0, {{5, 1}, {5, 1}, {6, 1}}));
  ASSERT_EQ(m.match(5, 1, &match), Matcher::Answer::kMatched);
  EXPECT_EQ(match.part, 0);
  ASSERT_EQ(m.match(6, 1, &match), Matcher::Answer::kMatched);
  EXPECT_EQ(match.part, 2);
  ASSERT_EQ(m.match(5, 1, &match), Matcher::Answer::kMatched);
  EXPECT_EQ(match.part, 1);
  EXPECT_TRUE(m.empty());
}

TEST(Matcher, ASendLargerThanItsReceiveIsAnErrorAndTakesNothing) {
  Matcher m;
  Matcher::Match match;
  m.add(grant(0, {{0, 100}}));
  EXPECT_EQ(m.match(0, 101, &match), Matcher::Answer::kTooLarge);
  EXPECT_EQ(m.match(0, 100, &match), Matcher::Answer::kMatched);
}

TEST(Matcher, HoldsAsManyGrantsAsAFlowMayHave) {
  Matcher m;
  for (uint32_t i = 0; i < kMaxReceives; ++i) {
    ASSERT_FALSE(m.full());
    m.add(grant(i, {{0, 1}}));
  }
  EXPECT_TRUE(m.full());
}

}  // namespace
}  // namespace weft
