// SPDX-License-Identifier: Apache-2.0
// Design, invariant 2: of each segment at most one copy is ever under way towards user memory. On a
// placing fabric a repair therefore needs proof that the old copy is dead, and a state of the
// message not older than the proof.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/connection/pair.h"
#include "transport/wire/immediate.h"

namespace weft::test {
namespace {

using Kind = Event::Kind;
constexpr Offloads kOrdered{.places = true, .ordered_path = true};
constexpr Offloads kUnordered{.places = true};
constexpr Offloads kReliable{.places = true, .reliable = true, .ordered_path = true};

bool is_data(const Parcel& p) { return !p.control && !p.is_probe(); }

// Copies of one segment that were posted, by the address they go to.
std::map<uint64_t, int> copies(const Pair& pair) {
  std::map<uint64_t, int> out;
  for (const Parcel& p : pair.history) {
    if (is_data(p)) ++out[p.segment.remote_address];
  }
  return out;
}

class OneLiveCopy : public testing::TestWithParam<Offloads> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, OneLiveCopy, testing::Values(kOrdered, kUnordered, kReliable),
                         [](const auto& i) {
                           return i.param.reliable       ? "reliable"
                                  : i.param.ordered_path ? "ordered"
                                                         : "unordered";
                         });

TEST_P(OneLiveCopy, ATimeOutNeverSendsDataAgain) {
  Pair pair(GetParam());
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 8000)));
  pair.settle();
  // Everything from the sender is stuck in the network, everything from the receiver lost.
  std::vector<Parcel> stuck;
  pair.lose = [&](const Parcel& p) {
    if (is_data(p)) stuck.push_back(p);
    return true;
  };
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 8000), 8000));
  pair.run([] { return false; }, seconds(5));
  ASSERT_EQ(stuck.size(), 8u);
  for (auto& [address, n] : copies(pair)) EXPECT_EQ(n, 1);
}

TEST_P(OneLiveCopy, WithoutConfirmationOfAKillNothingIsSentAgain) {
  Pair pair(GetParam());
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 8000)));
  pair.settle();
  pair.carry_out_kills = false;  // neither NIC has ended its queue pair yet
  uint64_t n = 0;
  pair.lose = [&](const Parcel& p) { return is_data(p) && ++n <= 8; };
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 8000), 8000));
  // Probes are lost as well, so that not even order proves anything.
  const auto lose = pair.lose;
  pair.lose = [&, lose](const Parcel& p) { return p.is_probe() || lose(p); };
  for (int i = 0; i < 500; ++i) {
    pair.turn(0), pair.turn(1), pair.deliver();
    pair.now = pair.now + milliseconds(1);
  }
  EXPECT_FALSE(pair.kills.empty());
  for (auto& [address, count] : copies(pair)) EXPECT_EQ(count, 1);
  pair.carry_out_kills = true;
  pair.lose = [](const Parcel&) { return false; };
  ASSERT_TRUE(pair.run(
      [&] { return pair.count(1, Kind::kReceived) == 1 && pair.count(0, Kind::kSent) == 1; }));
  for (auto& [address, count] : copies(pair)) EXPECT_EQ(count, 2);
}

TEST(Placing, ALaterArrivalOnAnOrderedPathProvesALossAndOneRepairFollows) {
  Pair pair(kOrdered);
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 16 * 1024)));
  pair.settle();
  int n = 0;
  pair.lose = [&](const Parcel& p) { return is_data(p) && n++ == 0; };
  auto* from = pair.buffer(0, 16 * 1024, std::byte{3});
  ASSERT_TRUE(pair.send(0, flow, from, 16 * 1024));
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
  EXPECT_EQ(pair.end[0]->segments_retransmitted(), 1u);
  for (const Path& p : pair.end[0]->paths()) EXPECT_EQ(p.epoch, 0u) << "no kill was needed";
}

TEST(Placing, AnOrderedPathThatReordersIsNeverTrustedAgain) {
  Pair pair(kOrdered, [](ConnectionConfig& c) { c.paths = 1, c.timer_floor = milliseconds(50); });
  const FlowId flow = pair.open_flow(0);
  // Teach the path a long round trip, so that age forbids an early verdict.
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 100)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 100), 100));
  pair.turn(0);
  pair.now = pair.now + milliseconds(10);
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 4096)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 4096), 4096));
  // The first segment is late: it lands behind the others, after they were reported.
  std::vector<Parcel> late;
  bool catching = true;
  pair.lose = [&](const Parcel& p) {
    if (!catching || !is_data(p) || !late.empty()) return false;
    late.push_back(p);
    return true;
  };
  pair.settle();
  catching = false;
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(pair.end[0]->segments_retransmitted(), 0u) << "it is not old enough to be dead";
  EXPECT_TRUE(pair.end[0]->paths()[0].ordered);
  pair.wire.push_back(late[0]);
  pair.settle();
  EXPECT_EQ(pair.count(0, Kind::kSent), 2u);
  EXPECT_FALSE(pair.end[0]->paths()[0].ordered);
}

TEST(Placing, WhatLandsBeforeItsRecordIsKeptAndNoReportWithoutItCausesARepair) {
  Pair pair(kOrdered);
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 32 * 1024)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 32 * 1024), 32 * 1024));
  int controls = 0;
  pair.lose = [&](const Parcel& p) { return p.from == 0 && p.control && ++controls <= 3; };
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
  for (auto& [address, n] : copies(pair)) EXPECT_EQ(n, 1);
}

TEST(Placing, ASendIsNotReportedWhileItsSourceMayBeRead) {
  Pair pair(kOrdered);
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 5000)));
  pair.settle();
  pair.hold_completions = true;
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 5000), 5000));
  pair.settle();
  EXPECT_EQ(pair.count(1, Kind::kReceived), 1u);
  EXPECT_EQ(pair.count(0, Kind::kSent), 0u) << "acked, but the NIC may still read";
  pair.hold_completions = false;
  pair.settle();
  EXPECT_EQ(pair.count(0, Kind::kSent), 1u);
}

TEST(Placing, AFlowMayBeClosedAndForgottenWhileTheNicStillReads) {
  Pair pair(kOrdered);
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 5000)));
  pair.settle();
  pair.hold_completions = true;
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 5000), 5000));
  pair.settle();
  pair.end[0]->close_send_flow(flow);
  pair.end[1]->close_receive_flow(flow);
  pair.run([] { return false; }, milliseconds(10));
  EXPECT_FALSE(pair.end[0]->quiet());
  pair.hold_completions = false;
  EXPECT_TRUE(pair.run([&] { return pair.end[0]->quiet() && pair.end[1]->quiet(); }));
  EXPECT_EQ(pair.count(0, Kind::kSent), 0u) << "nobody is there to hear of it";
}

TEST(Placing, AKillNeedsBothEndsAndBeginsANewEpochAtBoth) {
  Pair pair(kReliable);
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 5000)));
  pair.settle();
  pair.end[0]->handle_path_broken(pair.now, 1, 0);
  int controls = 0;
  pair.lose = [&](const Parcel& p) { return p.control && ++controls <= 4; };
  ASSERT_TRUE(pair.run(
      [&] { return pair.end[0]->paths()[1].epoch == 1 && pair.end[1]->paths()[1].epoch == 1; }));
  EXPECT_EQ(pair.end[0]->paths()[0].epoch, 0u);
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 5000), 5000));
  EXPECT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
}

TEST(Placing, ClosingAFlowThatWasGrantedKillsEveryPath) {
  Pair pair(kOrdered);
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 5000)));
  pair.settle();
  pair.end[1]->close_receive_flow(flow);
  ASSERT_TRUE(pair.run([&] { return pair.end[0]->quiet() && pair.end[1]->quiet(); }));
  for (int h = 0; h < 2; ++h) {
    for (const Path& p : pair.end[h]->paths()) EXPECT_EQ(p.epoch, 1u) << "host " << h;
  }
}

}  // namespace
}  // namespace weft::test
