// SPDX-License-Identifier: Apache-2.0
// How flows share a connection: urgent messages first, deficit round robin between the others, no
// flow in another's way.
#include <gtest/gtest.h>

#include "tests/unit/connection/pair.h"

namespace weft::test {
namespace {

using Kind = Event::Kind;

// How many segments of others went before the last of a message of `bytes`, sent with `hints`
// while a large one fills the window.
size_t others_ahead(size_t bytes, const TrafficHints& hints) {
  Pair pair({}, [](ConnectionConfig& c) { c.window_bytes = 16 << 10; });
  const FlowId large = pair.open_flow(0), late = pair.open_flow(0);
  EXPECT_TRUE(pair.receive(1, large, pair.buffer(1, 4 << 20)));
  EXPECT_TRUE(pair.receive(1, late, pair.buffer(1, bytes)));
  pair.settle();
  EXPECT_TRUE(pair.send(0, large, pair.buffer(0, 4 << 20), 4 << 20));
  pair.turn(0);
  EXPECT_TRUE(pair.send(0, late, pair.buffer(0, bytes), bytes, 0, 0, hints));
  const size_t before = pair.history.size();
  for (int i = 0; i < 60; ++i) {
    pair.now = pair.now + microseconds(100);  // acks are due
    pair.deliver(), pair.turn(1), pair.deliver(), pair.turn(0);
  }
  size_t ahead = 0, sent = 0;
  for (size_t i = before; i < pair.history.size() && sent < bytes; ++i) {
    const Parcel& p = pair.history[i];
    if (p.from != 0 || p.control || p.is_probe()) continue;
    (p.header.flow == late ? sent : ahead) += p.header.flow == late ? p.segment.bytes : 1;
  }
  EXPECT_EQ(sent, bytes);
  return ahead;
}

constexpr TrafficHints kLatencyBound{0x10, 2, 1, true}, kBulk{0x10, 2, 1, false};

TEST(Sharing, ASmallMessageOvertakesALargeOne) {
  EXPECT_EQ(others_ahead(100, {}), 0u) << "it goes as soon as the window has room";
}

TEST(Sharing, WhatIsHintedToBeLatencyBoundOvertakesALargeMessage) {
  EXPECT_EQ(others_ahead(32 << 10, kLatencyBound), 0u);
  EXPECT_EQ(others_ahead(kUrgentBytes, kLatencyBound), 0u);
  EXPECT_GT(others_ahead(32 << 10, {}), 0u) << "without the hint it shares";
  EXPECT_GT(others_ahead(32 << 10, kBulk), 0u);
}

TEST(Sharing, ALongMessageOvertakesNothingWhateverTheHint) {
  EXPECT_GT(others_ahead(kUrgentBytes + 128, kLatencyBound), 0u);
}

TEST(Sharing, AnUrgentMessageOfManySegmentsIsRepairedLikeOthers) {
  Pair pair({}, [](ConnectionConfig& c) { c.window_bytes = 64 << 10; });
  const FlowId large = pair.open_flow(0), late = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, large, pair.buffer(1, 4 << 20)));
  Pair::Buffer* to = pair.buffer(1, 20'000);
  ASSERT_TRUE(pair.receive(1, late, to));
  pair.settle();
  Pair::Buffer* from = pair.buffer(0, 20'000, std::byte{0x5a});
  ASSERT_TRUE(pair.send(0, late, from, 20'000, 0, 0, kLatencyBound));
  ASSERT_TRUE(pair.send(0, large, pair.buffer(0, 4 << 20), 4 << 20));
  int lost = 0;
  pair.lose = [&](const Parcel& p) {
    return p.from == 0 && !p.control && !p.is_probe() && p.header.flow == late &&
           p.header.segment % 3 == 1 && lost++ < 4;
  };
  ASSERT_TRUE(pair.run([&] { return pair.count(1, Kind::kReceived) == 1; }));
  ASSERT_TRUE(pair.run([&] { return pair.count(1, Kind::kReceived) == 2; }));
  EXPECT_GE(lost, 4);
  EXPECT_TRUE(to->bytes == from->bytes);
}

TEST(Sharing, TheLatestHintIsToldWithWhatTheConnectionWaitsFor) {
  Pair pair;
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 10)));
  pair.settle();
  EXPECT_EQ(pair.end[0]->describe(pair.now).find("hint"), std::string::npos);
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 10), 10, 0, 0, kLatencyBound));
  EXPECT_NE(pair.end[0]->describe(pair.now).find("operations 16, 2 peers, 1 flows a peer, latency"),
            std::string::npos)
      << pair.end[0]->describe(pair.now);
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
