// SPDX-License-Identifier: Apache-2.0
// How flows share a connection: small messages first, deficit round robin between the others, no
// flow in another's way.
#include <gtest/gtest.h>

#include "tests/unit/connection/pair.h"

namespace weft::test {
namespace {

using Kind = Event::Kind;

TEST(Sharing, ASmallMessageOvertakesALargeOne) {
  Pair pair({}, [](ConnectionConfig& c) { c.window_bytes = 16 << 10; });
  const FlowId large = pair.open_flow(0), small = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, large, pair.buffer(1, 1 << 20)));
  ASSERT_TRUE(pair.receive(1, small, pair.buffer(1, 100)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, large, pair.buffer(0, 1 << 20), 1 << 20));
  pair.turn(0);
  ASSERT_TRUE(pair.send(0, small, pair.buffer(0, 100), 100));
  const size_t before = pair.history.size();
  pair.turn(1), pair.deliver(), pair.turn(1), pair.deliver(), pair.turn(0);
  size_t ahead = 0;
  for (size_t i = before; i < pair.history.size(); ++i) {
    const Parcel& p = pair.history[i];
    if (p.from != 0 || p.control || p.is_probe()) continue;
    if (p.header.flow == small) break;
    ++ahead;
  }
  EXPECT_EQ(ahead, 0u) << "it goes as soon as the window has room";
}

TEST(Sharing, TwoFlowsGetEqualShares) {
  Pair pair({}, [](ConnectionConfig& c) { c.window_bytes = 32 << 10; });
  const FlowId a = pair.open_flow(0), b = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, a, pair.buffer(1, 4 << 20)));
  ASSERT_TRUE(pair.receive(1, b, pair.buffer(1, 4 << 20)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, a, pair.buffer(0, 4 << 20), 4 << 20));
  ASSERT_TRUE(pair.send(0, b, pair.buffer(0, 4 << 20), 4 << 20));
  for (int i = 0; i < 60; ++i) pair.turn(0), pair.turn(1), pair.deliver();
  std::array<uint64_t, 2> sent{};
  for (const Parcel& p : pair.history) {
    if (p.from == 0 && !p.control && !p.is_probe()) sent[p.header.flow == b] += p.segment.bytes;
  }
  ASSERT_GT(sent[0] + sent[1], 500000u);
  EXPECT_NEAR(static_cast<double>(sent[0]) / static_cast<double>(sent[1]), 1.0, 0.1);
}

TEST(Sharing, AFlowWhoseReceiverPostsNothingBlocksNoOther) {
  Pair pair;
  const FlowId idle = pair.open_flow(0), busy = pair.open_flow(0);
  (void)idle;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(pair.receive(1, busy, pair.buffer(1, 2000)));
    pair.settle();
    ASSERT_TRUE(pair.send(0, busy, pair.buffer(0, 2000), 2000));
    ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == static_cast<size_t>(i + 1); }));
  }
}

TEST(Sharing, TheWindowBoundsWhatIsInFlight) {
  Pair pair({}, [](ConnectionConfig& c) { c.window_bytes = 20 << 10; });
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 1 << 20)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 1 << 20), 1 << 20));
  pair.turn(0);
  size_t bytes = 0;
  for (const Parcel& p : pair.wire) bytes += p.segment.bytes * !p.control;
  EXPECT_GE(bytes, 20u << 10);
  EXPECT_LE(bytes, (20u << 10) + 1024);
}

TEST(Sharing, BothDirectionsShareOneConnection) {
  Pair pair;
  const FlowId there = pair.open_flow(0), back = pair.open_flow(1);
  ASSERT_TRUE(pair.receive(1, there, pair.buffer(1, 50000)));
  ASSERT_TRUE(pair.receive(0, back, pair.buffer(0, 50000)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, there, pair.buffer(0, 50000), 50000));
  ASSERT_TRUE(pair.send(1, back, pair.buffer(1, 50000), 50000));
  EXPECT_TRUE(pair.run([&] {
    return pair.count(0, Kind::kSent) == 1 && pair.count(1, Kind::kSent) == 1 &&
           pair.count(0, Kind::kReceived) == 1 && pair.count(1, Kind::kReceived) == 1;
  }));
}

}  // namespace
}  // namespace weft::test
