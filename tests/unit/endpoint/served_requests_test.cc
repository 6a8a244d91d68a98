// SPDX-License-Identifier: Apache-2.0
// What is remembered of a peer's requests: the latest, in whatever order they were served.
#include "multipath/endpoint/served_requests.h"

#include <gtest/gtest.h>

namespace weft::test {
namespace {

TEST(ServedRequests, AreFoundInWhateverOrderTheyWereServed) {
  ServedRequests served;
  for (const uint32_t request : {5u, 2u, 9u, 7u, 1u}) served.remember(request, request * 10);
  served.remember(7, ServedRequests::kRefused);
  for (const uint32_t request : {1u, 2u, 5u, 9u}) {
    ASSERT_NE(served.find(request), nullptr) << request;
    EXPECT_EQ(*served.find(request), request * 10);
  }
  EXPECT_EQ(*served.find(7), ServedRequests::kRefused);
  for (const uint32_t request : {0u, 3u, 8u, 10u}) EXPECT_EQ(served.find(request), nullptr);
  EXPECT_FALSE(served.forgotten(0));
}

TEST(ServedRequests, OnlyTheLatestAreRememberedAndOlderOnesAreKnownToBeForgotten) {
  ServedRequests served;
  constexpr uint32_t kAll = ServedRequests::kMost + 100;
  for (uint32_t request = 1; request <= kAll; ++request) served.remember(request, request);
  EXPECT_EQ(served.find(100), nullptr);
  EXPECT_TRUE(served.forgotten(100));
  ASSERT_NE(served.find(101), nullptr);
  EXPECT_FALSE(served.forgotten(101));
  EXPECT_FALSE(served.forgotten(kAll + 1));
}

}  // namespace
}  // namespace weft::test
