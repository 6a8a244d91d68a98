// SPDX-License-Identifier: Apache-2.0
// The word that was meant: near ones are found, far ones are not, long ones do no harm.
#include "transport/system/nearest.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace weft {
namespace {

constexpr std::array<std::string_view, 4> kWords = {"WEFT_LOG", "WEFT_PATHS", "WEFT_PEER_TIMEOUT",
                                                    "WEFT_CC"};

std::string_view meant(std::string_view word) { return nearest(word, kWords, "WEFT_"); }

TEST(NearestTest, AFewKeystrokesAreNear) {
  EXPECT_EQ(meant("WEFT_PATH"), "WEFT_PATHS");
  EXPECT_EQ(meant("WEFT_PTAHS"), "WEFT_PATHS");
  EXPECT_EQ(meant("WEFT_CCC"), "WEFT_CC");
  EXPECT_EQ(meant("weft_log"), "WEFT_LOG");
  EXPECT_EQ(meant("PATHS"), "WEFT_PATHS") << "the prefix left out";
}

TEST(NearestTest, WhatIsContainedIsNear) {
  EXPECT_EQ(meant("WEFT_TIMEOUT"), "WEFT_PEER_TIMEOUT");
  EXPECT_EQ(meant("WEFT_LOG_LEVEL"), "") << "three letters say too little";
  EXPECT_EQ(meant("WEFT_MAXIMUM_PATHS"), "WEFT_PATHS");
}

TEST(NearestTest, TheRestIsFar) {
  EXPECT_EQ(meant("WEFT_QOS"), "");
  EXPECT_EQ(meant("WEFT_"), "") << "the prefix alone is near to nothing";
  EXPECT_EQ(meant(""), "");
  EXPECT_EQ(nearest("a", {}), "");
}

TEST(NearestTest, LongWordsAreFarAndHarmless) {
  EXPECT_EQ(meant("WEFT_" + std::string(65, 'P')), "");
  EXPECT_EQ(meant(std::string(100000, 'P')), "");
  const std::string long_word(65, 'P');
  const std::array<std::string_view, 1> words = {long_word};
  EXPECT_EQ(nearest(std::string(64, 'P'), words), "") << "a word that is too long to compare";
}

}  // namespace
}  // namespace weft
