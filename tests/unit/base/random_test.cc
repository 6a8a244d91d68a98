// SPDX-License-Identifier: Apache-2.0
// Random: reproducible, within its bounds, roughly uniform.
#include "transport/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace weft {
namespace {

// xoshiro256** with its state from splitmix64(0), written out again from the papers' pseudocode.
TEST(Random, IsTheGeneratorItSaysItIs) {
  // The first outputs of splitmix64 from seed 0, published with it.
  const uint64_t s[4] = {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu,
                         0xf88bb8a8724c81ecu};
  const auto rotl = [](uint64_t x, int k) { return x << k | x >> (64 - k); };
  Random random(0);
  EXPECT_EQ(random.next(), rotl(s[1] * 5, 7) * 9);
  const uint64_t second = s[1] ^ (s[2] ^ s[0]);  // state 1 after a step
  EXPECT_EQ(random.next(), rotl(second * 5, 7) * 9);
}

TEST(Random, SameSeedSameNumbersAndOthersDiffer) {
  Random a(42), b(42);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.next(), b.next());
  std::set<uint64_t> firsts;
  for (uint64_t seed = 0; seed < 1000; ++seed) firsts.insert(Random(seed).next());
  EXPECT_EQ(firsts.size(), 1000u);
}

TEST(Random, BelowStaysBelowAndIsUniform) {
  Random random(3);
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_EQ(random.below(1), 0u);
  for (int i = 0; i < 1000; ++i) ASSERT_LT(random.below(UINT64_MAX), UINT64_MAX);
  std::array<int, 10> bins{};
  for (int i = 0; i < 100000; ++i) ++bins.at(random.below(10));
  for (int count : bins) EXPECT_NEAR(count, 10000, 500);
}

TEST(Random, ChanceIsAsLikelyAsAsked) {
  Random random(4);
  int never = 0, always = 0, some = 0;
  for (int i = 0; i < 100000; ++i) {
    never += random.chance(0);
    always += random.chance(1);
    some += random.chance(0.1);
  }
  EXPECT_EQ(never, 0);
  EXPECT_EQ(always, 100000);
  EXPECT_NEAR(some, 10000, 500);
}

}  // namespace
}  // namespace weft
