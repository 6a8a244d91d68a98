// SPDX-License-Identifier: Apache-2.0
// A peer that lies: whatever it says, nothing outside granted memory is written and nothing of ours
// breaks.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/connection/pair.h"
#include "transport/base/random.h"
#include "transport/wire/immediate.h"

namespace weft::test {
namespace {

using Kind = Event::Kind;

template <class... Statements>
void say(Pair& pair, int to, const Statements&... statements) {
  std::array<std::byte, kMaxControlBytes> packet;
  wire::ControlWriter writer(packet);
  (writer.add(statements), ...);
  const size_t bytes = writer.finish({}, {.stamp = 5});
  pair.end[to]->handle_control(pair.now, std::span(packet).first(bytes));
}

TEST(Hostile, DataForWhatWasNeverGrantedGoesNowhere) {
  Pair pair;
  const FlowId flow = pair.open_flow(0);
  auto* to = pair.buffer(1, 2048);
  ASSERT_TRUE(pair.receive(1, flow, to));
  pair.settle();
  wire::DataHeader good{1024, 0, 0, 0, flow, 0, 0, 2048, 1024, 1024};
  const auto refused = [&](auto change) {
    wire::DataHeader h = good;
    change(h);
    return pair.end[1]->claim(pair.now, h) == nullptr;
  };
  EXPECT_TRUE(refused([](auto& h) { h.flow += 1; }));
  EXPECT_TRUE(refused([](auto& h) { h.flow += 1u << kFlowIndexBits; }))
      << "another use of the same index";
  EXPECT_TRUE(refused([](auto& h) { h.number = 1; }));
  EXPECT_TRUE(refused([](auto& h) { h.number = ~0u; }));
  EXPECT_TRUE(refused([](auto& h) { h.part = 1; }));
  EXPECT_TRUE(refused([](auto& h) { h.part = 200; }));
  EXPECT_TRUE(refused([](auto& h) { h.path = kMaxPaths; }));
  EXPECT_TRUE(refused([](auto& h) { h.segment_bytes = 512; })) << "not the size that was agreed on";
  EXPECT_TRUE(refused([](auto& h) { h.segment = kSegmentWindow; }));
  EXPECT_EQ(pair.end[1]->claim(pair.now, good), to->base());
  EXPECT_TRUE(refused([](auto&) {})) << "claimed already";
  EXPECT_TRUE(refused([](auto& h) { h.segment = 1, h.message_bytes = 1500; }))
      << "another size than before";
}

TEST(Hostile, AMessageLargerThanItsReceiveFailsTheFlowAndWritesNothing) {
  Pair pair;
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 2048)));
  pair.settle();
  wire::DataHeader h{1024, 0, 0, 0, flow, 0, 0, 2049, 1024, 1024};
  EXPECT_EQ(pair.end[1]->claim(pair.now, h), nullptr);
  pair.settle();
  ASSERT_EQ(pair.count(1, Kind::kFlowFailed), 1u);
  EXPECT_EQ(pair.events(1, Kind::kFlowFailed)[0].failure, Failure::kTooLarge);
  EXPECT_TRUE(pair.run([&] { return pair.count(0, Kind::kFlowFailed) == 1; }))
      << "the sender learns of it";
}

TEST(Hostile, AcksForWhatWasNeverSentChangeNothing) {
  for (bool places : {false, true}) {
    Pair pair({.places = places, .ordered_path = places});
    const FlowId flow = pair.open_flow(0);
    ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 100000)));
    pair.settle();
    ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 100000), 100000));
    wire::PathAck path{0, 0, ~0ull, 0, 0, 8, {}};
    path.bits.fill(~0ull);
    wire::MessageAck message{flow, 0, 0, true, 90, 0, 0, 8, {}};
    message.bits.fill(~0ull);
    say(pair, 0, path, message);
    path.path = 999;
    path.largest = 0;
    say(pair, 0, path, wire::MessageAck{flow, 7, 0, true, 5, 0, 0, 0, {}}, wire::Query{flow, 9, 3});
    EXPECT_EQ(pair.count(0, Kind::kSent), 0u);
    ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
    EXPECT_EQ(pair.count(1, Kind::kReceived), 1u);
  }
}

TEST(Hostile, AGrantOutsideItsRegionFailsTheFlow) {
  Pair pair;
  const FlowId flow = pair.open_flow(0);
  wire::Region region{3, 1, 0x1000, 100, 0, 1, {}};
  wire::Grant grant;
  grant.flow = flow;
  grant.parts = 1;
  grant.part[0] = {3, 1, 50, 51, 0};
  say(pair, 0, region, grant);
  pair.turn(0);
  EXPECT_EQ(pair.count(0, Kind::kGranted), 0u);
  EXPECT_EQ(pair.count(0, Kind::kFlowFailed), 1u);
}

TEST(Hostile, AGrantBeforeItsRegionWaits) {
  Pair pair;
  const FlowId flow = pair.open_flow(0);
  wire::Grant grant;
  grant.flow = flow;
  grant.parts = 1;
  grant.part[0] = {3, 1, 0, 100, 0};
  say(pair, 0, grant);
  pair.turn(0);
  EXPECT_EQ(pair.count(0, Kind::kGranted), 0u);
  say(pair, 0, wire::Region{3, 1, 0x1000, 100, 0, 1, {}});
  pair.turn(0);
  EXPECT_EQ(pair.count(0, Kind::kGranted), 1u);
}

// Random statements of every kind, and random bytes, into connections at work: they must neither
// crash (run it under sanitizers) nor make an honest message arrive wrong on a flow that is still
// alive.
TEST(Hostile, RandomControlBreaksNothing) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const bool places = seed % 2 == 0;
    Pair pair({.places = places, .ordered_path = places});
    const FlowId flow = pair.open_flow(0);
    for (int i = 0; i < 4; ++i) pair.receive(1, flow, pair.buffer(1, 50000));
    pair.settle();
    for (int i = 0; i < 4; ++i) pair.send(0, flow, pair.buffer(0, 50000), 50000);
    for (int i = 0; i < 200; ++i) {
      std::array<std::byte, 256> packet{};
      for (std::byte& b : packet)
        b = static_cast<std::byte>(random.chance(0.7) ? random.below(4) : random.next());
      wire::Writer w(packet);
      const size_t body = random.below(220);
      w.patch<uint8_t>(0, 0);
      wire::encode_control(packet, {}, {random.below(100), 0, 0, static_cast<uint16_t>(body)});
      packet[32] = static_cast<std::byte>(1 + random.below(16));
      packet[33] = static_cast<std::byte>(random.below(9));
      const auto length =
          static_cast<uint16_t>(random.chance(0.9) && body > 4 ? body - 4 : random.next());
      std::memcpy(packet.data() + 34, &length, 2);
      pair.end[random.below(2)]->handle_control(pair.now, std::span(packet).first(32 + body));
      if (places) {
        // A landing is the NIC's word, not the peer's: only its immediate data is hostile.
        pair.end[1]->handle_landing(pair.now, static_cast<PathIndex>(random.below(6)), 0,
                                    wire::immediate_long(static_cast<uint32_t>(random.below(4)), 0,
                                                         static_cast<uint32_t>(random.below(70))),
                                    static_cast<uint32_t>(random.below(2000)));
      }
      pair.turn(0), pair.turn(1);
      if (random.chance(0.2)) pair.deliver();
      pair.now = pair.now + microseconds(static_cast<int64_t>(random.below(300)));
    }
  }
}

}  // namespace
}  // namespace weft::test
