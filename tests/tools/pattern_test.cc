// SPDX-License-Identifier: Apache-2.0
// The pattern of messages: whatever may go wrong with bytes on their way is seen, and named.
#include "tools/common/pattern.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

namespace weft::tools {
namespace {

std::vector<unsigned char> message(size_t bytes, uint64_t seed, size_t misalign = 0) {
  std::vector<unsigned char> data(bytes + misalign);
  fill_pattern(data.data() + misalign, bytes, seed);
  return data;
}

TEST(Pattern, AnySizeAndAlignmentIsRightAfterFilling) {
  for (size_t bytes = 0; bytes < 400; ++bytes) {
    for (size_t misalign : {0, 1, 7}) {
      const auto data = message(bytes, pattern_seed(3, bytes), misalign);
      EXPECT_FALSE(check_pattern(data.data() + misalign, bytes, pattern_seed(3, bytes)));
    }
  }
}

TEST(Pattern, EverySingleFlippedBitIsFoundWhereItIs) {
  const uint64_t seed = pattern_seed(0, 5);
  auto data = message(333, seed);
  for (size_t at = 0; at < data.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      data[at] ^= static_cast<unsigned char>(1 << bit);
      EXPECT_EQ(check_pattern(data.data(), data.size(), seed), at);
      data[at] ^= static_cast<unsigned char>(1 << bit);
    }
  }
}

TEST(Pattern, AShiftByAnyNumberOfBytesIsSeen) {
  const uint64_t seed = pattern_seed(1, 9);
  const auto data = message(20000, seed);
  for (size_t shift = 1; shift < 9000; shift += shift < 300 ? 1 : 128) {
    EXPECT_TRUE(check_pattern(data.data() + shift, 4096, seed)) << shift;
  }
}

TEST(Pattern, MessagesOfOtherSendersAndNumbersDiffer) {
  for (uint32_t rank = 0; rank < 8; ++rank) {
    for (uint64_t number = 0; number < 200; ++number) {
      const auto data = message(16, pattern_seed(rank, number));
      if (rank != 2 || number != 7) {
        EXPECT_TRUE(check_pattern(data.data(), 16, pattern_seed(2, 7))) << rank << " " << number;
      }
    }
  }
}

TEST(Pattern, APieceCanBeFilledByItself) {
  const uint64_t seed = pattern_seed(4, 4);
  auto data = message(1000, seed);
  std::memset(data.data() + 136, 0, 300);
  fill_pattern(data.data() + 136, 300, pattern_from(seed, 136));
  EXPECT_FALSE(check_pattern(data.data(), data.size(), seed));
}

TEST(Pattern, WrongBytesAreTracedToWhereTheyCameFrom) {
  const uint64_t seed = pattern_seed(0, 1);
  const uint64_t other = pattern_seed(1, 2);
  const std::vector<KnownMessage> known = {{seed, 8192, "message 1"}, {other, 8192, "message 2"}};
  auto describe = [&](const std::vector<unsigned char>& data) {
    return describe_wrong_bytes(data.data(), data.size(), seed, "message 1", known);
  };
  const auto swapped = message(8192, other);
  EXPECT_NE(describe(swapped).find("at 0 are bytes 0 of message 2"), std::string::npos)
      << describe(swapped);
  auto moved = message(8192, seed);
  std::rotate(moved.begin(), moved.begin() + 1408, moved.end());
  EXPECT_NE(describe(moved).find("at 0 are bytes 1408 of the same message"), std::string::npos)
      << describe(moved);
  auto flipped = message(8192, seed);
  flipped[77] ^= 4;
  EXPECT_NE(describe(flipped).find("one byte corrupted (xor 04)"), std::string::npos);
  auto zeros = message(8192, seed);
  std::fill(zeros.begin() + 4096, zeros.end(), 0);
  EXPECT_NE(describe(zeros).find("never written"), std::string::npos);
}

}  // namespace
}  // namespace weft::tools
