// SPDX-License-Identifier: Apache-2.0
// Status, Result and the units of time.
#include "transport/base/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "transport/base/units.h"

namespace weft {
namespace {

TEST(Result, HoldsAValueOrAStatus) {
  Result<int> good(7);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 7);
  EXPECT_TRUE(good.status().ok());
  Result<int> bad(Status(Code::kRemote, "it said no"));
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), Code::kRemote);
  EXPECT_EQ(bad.status().words(), "it said no");
}

TEST(Result, HoldsWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> r(std::make_unique<int>(3));
  ASSERT_TRUE(r.ok());
  std::unique_ptr<int> out = std::move(*r);
  EXPECT_EQ(*out, 3);
}

TEST(Status, EveryCodeHasItsName) {
  for (int c = 0; c <= static_cast<int>(Code::kInternal); ++c) {
    EXPECT_STRNE(name_of(static_cast<Code>(c)), "unknown") << c;
  }
  EXPECT_STREQ(name_of(static_cast<Code>(200)), "unknown");
}

TEST(Units, AddUp) {
  const Time start{1000};
  const Time end = start + microseconds(3);
  EXPECT_EQ(end - start, nanoseconds(3000));
  EXPECT_EQ(end - microseconds(3), start);
  EXPECT_EQ(seconds(2) / 4, milliseconds(500));
  EXPECT_EQ(milliseconds(2) * 3, microseconds(6000));
  EXPECT_LT(start, end);
  EXPECT_EQ(earlier(start, end), start);
  EXPECT_EQ(earlier(Time::never(), end), end);
  EXPECT_DOUBLE_EQ(milliseconds(1500).seconds(), 1.5);
}

}  // namespace
}  // namespace weft
