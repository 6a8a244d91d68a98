// SPDX-License-Identifier: Apache-2.0
// Placing mode with a NIC that retransmits: nothing is lost but by a path that breaks.
#include <algorithm>

#include "tests/unit/sim/bench.h"

namespace weft::sim {
namespace {

SimConfig reliable() {
  SimConfig c = placing();
  c.reliable = true;
  c.faults.loss = 0.5;  // the NIC repairs it
  c.faults.late = 0.2;
  return c;
}

TEST(SimReliable, NothingIsLostAndOrderIsKept) {
  Bench b(reliable(), 1);
  EXPECT_TRUE(b.host(0).offloads().reliable);
  EXPECT_TRUE(b.host(0).offloads().ordered_path);
  for (uint32_t i = 0; i < 1000; ++i) b.post(b.write(i * 128, 128, 0, i));
  b.settle();
  const std::vector<uint32_t> order = b.sink[1].immediates();
  EXPECT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(b.network.counters().lost, 0u);
}

TEST(SimReliable, ACompletionFollowsTheLanding) {
  Bench b(reliable(), 2);
  for (uint32_t i = 0; i < 100; ++i) b.post(b.write(i * 128, 128, 0, i));
  while (b.network.next_event() != Time::never()) {
    b.network.advance_to(b.network.next_event());
    b.poll(0);
    b.poll(1);
    ASSERT_LE(b.sink[0].heard.size(), b.sink[1].heard.size());
  }
  EXPECT_EQ(b.sink[0].heard.size(), 100u);
}

TEST(SimReliable, ABreakIsToldToBothEndsAndLeavesDoubt) {
  size_t landed = 0, lost = 0, broken = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimConfig c = reliable();
    c.faults.break_path = 0.02;
    Bench b(c, seed);
    for (uint32_t i = 0; i < 100; ++i) {
      b.post(b.write(i * 128, 128, 0, i));
      if (i % 4 == 0) b.network.advance_to(b.network.now() + microseconds(3));
    }
    b.settle();
    EXPECT_EQ(b.sink[0].count(Heard::Kind::kCompletion), 100u) << "seed " << seed;
    EXPECT_EQ(b.sink[0].count(Heard::Kind::kPathChange), b.network.counters().broken);
    EXPECT_EQ(b.sink[1].count(Heard::Kind::kPathChange), b.network.counters().broken);
    EXPECT_LE(b.network.counters().broken, 1u) << "an epoch breaks once";
    const std::vector<uint32_t> order = b.sink[1].immediates();
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "seed " << seed;
    broken += b.network.counters().broken;
    landed += order.size();
    lost += b.network.counters().lost;
    if (b.network.counters().broken == 0) {
      EXPECT_EQ(order.size(), 100u);
    }
    EXPECT_EQ(b.network.counters().violations, 0u) << b.network.first_violation();
  }
  EXPECT_GT(broken, 100u);
  EXPECT_GT(lost, 100u);
  EXPECT_GT(landed, 1000u);
}

TEST(SimReliable, ABrokenPathTakesPostsButSendsNothingUntilItIsReopened) {
  SimConfig c = reliable();
  c.faults.break_path = 1.0;
  Bench b(c);
  b.post(b.write(0, 128, 0, 0));
  b.settle();
  ASSERT_EQ(b.network.counters().broken, 1u);
  const size_t landed = b.sink[1].immediates().size();
  b.post(b.write(0, 128, 0, 1));
  b.settle();
  EXPECT_EQ(b.sink[1].immediates().size(), landed);
  EXPECT_EQ(b.sink[0].count(Heard::Kind::kCompletion), 2u);
  for (int i : {0, 1}) b.host(i).kill_path(b.link[i], 0, 0);
  b.settle();
  for (int i : {0, 1}) b.host(i).reopen_path(b.link[i], 0, 1);
  EXPECT_EQ(b.network.counters().violations, 0u) << b.network.first_violation();
  b.post(b.write(0, 128, 0, 2, 1));
  b.settle();
  EXPECT_EQ(b.network.counters().broken, 2u);
  EXPECT_EQ(b.sink[0].heard.back().change.epoch, 1u);
}

TEST(SimReliable, AShortBlackholeDelaysAndALongOneBreaks) {
  for (const Duration hole : {milliseconds(1), milliseconds(10)}) {
    SimConfig c = reliable();
    c.nic_delay = {0};
    c.blackholes.push_back({0, -1, Time{}, Time{} + hole});
    Bench b(c);
    b.post(b.write(0, 128, 0, 9));
    b.settle();
    const bool breaks = hole > c.retry_timeout;
    EXPECT_EQ(b.network.counters().broken, breaks ? 1u : 0u);
    EXPECT_EQ(b.sink[1].immediates().size(), breaks ? 0u : 1u);
    EXPECT_EQ(b.sink[0].count(Heard::Kind::kCompletion), 1u);
    EXPECT_GE(b.network.now(), Time{} + (breaks ? c.retry_timeout : hole));
  }
}

}  // namespace
}  // namespace weft::sim
