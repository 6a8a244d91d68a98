// SPDX-License-Identifier: Apache-2.0
// The laws of congestion control.
#include <gtest/gtest.h>

#include "multipath/congestion/law.h"

namespace weft {
namespace {

TEST(Fixed, TheWindowNeverMoves) {
  const Pipe pipe({});
  auto law = make_law("fixed", {1 << 20, 1408}, pipe);
  ASSERT_NE(law, nullptr);
  EXPECT_EQ(law->window(), 1u << 20);
  law->on_ack({Time{1}, 1408, microseconds(10), microseconds(9), true});
  law->on_loss(Time{2}, 1408);
  law->on_timeout(Time{3});
  EXPECT_EQ(law->window(), 1u << 20);
}

TEST(Fixed, TheWindowHoldsAtLeastOneSegment) {
  EXPECT_EQ(make_law("fixed", {10, 4096}, Pipe({}))->window(), 4096u);
}

TEST(Laws, AnUnknownNameIsNoLaw) { EXPECT_EQ(make_law("nonsense", {}, Pipe({})), nullptr); }

}  // namespace
}  // namespace weft
