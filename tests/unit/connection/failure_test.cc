// SPDX-License-Identifier: Apache-2.0
// Every failure ends in an error on the flows it concerns, at both ends, and on no other.
#include <gtest/gtest.h>

#include "tests/unit/connection/pair.h"

namespace weft::test {
namespace {

using Kind = Event::Kind;

class Failing : public testing::TestWithParam<bool> {
 protected:
  Offloads offloads() const { return {.places = GetParam(), .ordered_path = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Fabrics, Failing, testing::Bool(),
                         [](const auto& i) { return i.param ? "placing" : "datagram"; });

TEST_P(Failing, ClosingAReceiveFlowFailsItsSenderAndNobodyElse) {
  Pair pair(offloads());
  const FlowId doomed = pair.open_flow(0), other = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, doomed, pair.buffer(1, 5000)));
  ASSERT_TRUE(pair.receive(1, other, pair.buffer(1, 5000)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, doomed, pair.buffer(0, 5000), 5000));
  pair.end[1]->close_receive_flow(doomed);
  ASSERT_TRUE(pair.send(0, other, pair.buffer(0, 5000), 5000));
  ASSERT_TRUE(pair.run([&] {
    return pair.count(0, Kind::kFlowFailed) == 1 && pair.count(0, Kind::kSent) == 1 &&
           pair.count(1, Kind::kReceived) == 1;
  }));
  EXPECT_EQ(pair.events(0, Kind::kFlowFailed)[0].flow, doomed);
  EXPECT_EQ(pair.events(0, Kind::kFlowFailed)[0].failure, Failure::kPeerClosed);
  EXPECT_EQ(pair.count(1, Kind::kFlowFailed), 0u);
}

TEST_P(Failing, ClosingASendFlowFailsReceivesThatCanNeverComplete) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 500)));
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 500)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 500), 500));
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
  pair.end[0]->close_send_flow(flow);
  ASSERT_TRUE(pair.run([&] { return pair.count(1, Kind::kFlowFailed) == 1; }));
  EXPECT_EQ(pair.count(1, Kind::kReceived), 1u) << "what was complete is still reported";
}

TEST_P(Failing, AFlowThatIsClosedByBothEndsLeavesNothing) {
  Pair pair(offloads());
  for (int i = 0; i < 100; ++i) {
    const FlowId flow = pair.open_flow(i % 2);
    ASSERT_NE(flow, ~0u);
    pair.end[i % 2]->close_send_flow(flow);
    pair.end[1 - i % 2]->close_receive_flow(flow);
  }
  ASSERT_TRUE(pair.run([&] { return pair.end[0]->quiet() && pair.end[1]->quiet(); }));
  EXPECT_TRUE(pair.end[0]->last_word().empty());
  EXPECT_TRUE(pair.end[1]->last_word().empty());
}

TEST_P(Failing, MemoryThatIsTakenAwayFailsTheFlowsThatUseIt) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0), other = pair.open_flow(0);
  auto* to = pair.buffer(1, 5000);
  ASSERT_TRUE(pair.receive(1, flow, to));
  ASSERT_TRUE(pair.receive(1, other, pair.buffer(1, 100)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 5000), 5000));
  pair.turn(0);
  pair.end[1]->remove_region(to->region);
  if (!GetParam()) {
    pair.deliver();
    EXPECT_EQ(to->bytes[0], std::byte{0xee}) << "nothing is written after the region is gone";
  }
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kFlowFailed) == 1; }));
  EXPECT_EQ(pair.events(1, Kind::kFlowFailed)[0].failure, Failure::kDeregistered);
  ASSERT_TRUE(pair.send(0, other, pair.buffer(0, 100), 100));
  EXPECT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
}

TEST_P(Failing, TheSourceOfASendMayBeTakenAwayToo) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 5000)));
  pair.settle();
  auto* from = pair.buffer(0, 5000);
  ASSERT_TRUE(pair.send(0, flow, from, 5000));
  pair.end[0]->remove_region(from->region);
  ASSERT_TRUE(pair.run([&] {
    return pair.count(0, Kind::kFlowFailed) == 1 && pair.count(1, Kind::kFlowFailed) == 1;
  }));
}

struct GrantReader {
  std::vector<wire::Grant> grants;
  template <class Other>
  void on(const Other&) {}
  void on(const wire::Grant& g) { grants.push_back(g); }
};

// The younger receive is complete first. Its memory may go, and its place be taken by other memory,
// although the grant of it is still told: nothing tells the receiver that the sender knows.
TEST_P(Failing, MemoryOfACompleteReceiveMayGoWhileAnOlderOneIsUnderWay) {
  constexpr size_t kLong = 6 << 20;
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  auto *older = pair.buffer(1, kLong), *younger = pair.buffer(1, 100);
  ASSERT_TRUE(pair.receive(1, flow, older));
  ASSERT_TRUE(pair.receive(1, flow, younger));
  pair.lose = [](const Parcel& p) { return p.from == 0 && p.control; };
  pair.settle();
  auto* from = pair.buffer(0, kLong, std::byte{0x5a});
  ASSERT_TRUE(pair.send(0, flow, from, kLong));
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 100), 100));
  for (int i = 0; i < 100 && pair.count(1, Kind::kReceived) == 0; ++i) {
    pair.turn(0);
    pair.deliver();
    pair.turn(1);
  }
  ASSERT_EQ(pair.count(1, Kind::kReceived), 1u);
  ASSERT_EQ(pair.events(1, Kind::kReceived)[0].number, 1u);
  pair.end[1]->remove_region(younger->region);
  EXPECT_EQ(pair.count(1, Kind::kFlowFailed), 0u);
  ASSERT_EQ(pair.buffer(1, 100)->region, younger->region) << "the id is in use again";

  const size_t before = pair.history.size();
  pair.lose = [](const Parcel& p) { return p.from == 0; };
  pair.run([] { return false; }, milliseconds(50));
  GrantReader told;
  for (size_t i = before; i < pair.history.size(); ++i) {
    const Parcel& p = pair.history[i];
    if (p.from == 0 || !p.control) continue;
    wire::read_statements(
        std::span(p.packet.data).first(p.packet.bytes).subspan(wire::kControlHeaderBytes), told);
  }
  EXPECT_FALSE(told.grants.empty());
  for (const wire::Grant& grant : told.grants) {
    EXPECT_EQ(grant.part[0].size, grant.number == 0 ? kLong : 0) << grant.number;
  }

  pair.lose = [](const Parcel&) { return false; };
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 2; }));
  EXPECT_EQ(pair.count(1, Kind::kReceived), 2u);
  EXPECT_EQ(older->bytes, from->bytes);
  EXPECT_EQ(pair.count(0, Kind::kFlowFailed) + pair.count(1, Kind::kFlowFailed), 0u);
}

TEST_P(Failing, APeerThatIsSilentFailsEverythingAfterThePeerTimeOut) {
  Pair pair(offloads(), [](ConnectionConfig& c) { c.peer_timeout = milliseconds(500); });
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 500)));
  pair.settle();
  const Time start = pair.now;
  pair.lose = [](const Parcel&) { return true; };
  ASSERT_TRUE(pair.run([&] { return pair.count(1, Kind::kFlowFailed) == 1; }));
  EXPECT_EQ(pair.events(1, Kind::kFlowFailed)[0].failure, Failure::kPeerSilent);
  EXPECT_GE(pair.now - start, milliseconds(400));
  EXPECT_LE(pair.now - start, milliseconds(1000));
}

TEST_P(Failing, APeerThatIsThereButHasNothingToSayIsNotDead) {
  Pair pair(offloads(), [](ConnectionConfig& c) { c.peer_timeout = milliseconds(500); });
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 500)));
  EXPECT_FALSE(pair.run([&] { return pair.count(1, Kind::kFlowFailed) > 0; }, seconds(5)));
  EXPECT_LT(pair.history.size(), 300u) << "staying alive is cheap";
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 500), 500));
  EXPECT_TRUE(pair.run([&] { return pair.count(1, Kind::kReceived) == 1; }));
}

TEST_P(Failing, AProcessThatWasStoppedDoesNotBlameItsPeer) {
  Pair pair(offloads(), [](ConnectionConfig& c) { c.peer_timeout = milliseconds(500); });
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 500)));
  pair.settle();
  pair.now = pair.now + seconds(60);
  pair.turn(1);
  EXPECT_EQ(pair.count(1, Kind::kFlowFailed), 0u);
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 500), 500));
  EXPECT_TRUE(pair.run([&] { return pair.count(1, Kind::kReceived) == 1; }));
}

TEST_P(Failing, TheLastWordFinishesSendsWhoseAcksAreLost) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 3000)));
  pair.settle();
  pair.lose = [](const Parcel& p) { return p.from == 1; };
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 3000), 3000));
  pair.settle();
  ASSERT_EQ(pair.count(1, Kind::kReceived), 1u);
  EXPECT_EQ(pair.count(0, Kind::kSent), 0u);
  for (const auto& chunk : pair.end[1]->last_word())
    pair.end[0]->handle_statements(pair.now, chunk);
  pair.end[0]->handle_peer_gone(pair.now);
  pair.turn(0);
  EXPECT_EQ(pair.count(0, Kind::kSent), 1u);
}

TEST_P(Failing, CallsThatMakeNoSenseAreRefused) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  EXPECT_FALSE(pair.end[0]->open_send_flow(flow)) << "in use";
  EXPECT_FALSE(pair.end[1]->post_receive(flow + 5, {}, 0));
  EXPECT_FALSE(pair.end[1]->post_receive(flow, {}, 0));
  auto* to = pair.buffer(1, 100);
  ReceivePart outside{to->base() + 50, 51, to->region, 0};
  EXPECT_FALSE(pair.end[1]->post_receive(flow, {&outside, 1}, 0));
  std::vector<ReceivePart> nine(9, {to->base(), 10, to->region, 0});
  EXPECT_FALSE(pair.end[1]->post_receive(flow, nine, 0));
  for (uint32_t i = 0; i < kMaxReceives; ++i) ASSERT_TRUE(pair.receive(1, flow, to));
  EXPECT_FALSE(pair.receive(1, flow, to)) << "as many as there may be";
  pair.settle();
  auto* from = pair.buffer(0, 200);
  EXPECT_FALSE(pair.end[0]->post_send({flow, 0, 0, from->base(), 101, 0, from->region, 0}))
      << "too large";
  EXPECT_FALSE(pair.end[0]->post_send({flow, 0, 1, from->base(), 10, 0, from->region, 0}))
      << "no such part";
  EXPECT_TRUE(pair.end[0]->post_send({flow, 0, 0, from->base(), 10, 0, from->region, 0}));
  EXPECT_FALSE(pair.end[0]->post_send({flow, 0, 0, from->base(), 10, 0, from->region, 0}))
      << "taken";
}

}  // namespace
}  // namespace weft::test
