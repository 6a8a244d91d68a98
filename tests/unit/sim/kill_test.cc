// SPDX-License-Identifier: Apache-2.0
// Kills and epochs: once kKilled is delivered nothing of that epoch lands, and everything that
// landed before was announced before.
#include <algorithm>

#include "tests/unit/sim/bench.h"

namespace weft::sim {
namespace {

TEST(SimKill, NothingLandsAfterTheKillAndItsLandingsComeFirst) {
  size_t discarded = 0, landed_after_the_call = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimConfig c = placing();
    c.faults.late = 0.2;
    Bench b(c, seed);
    for (uint32_t i = 0; i < 100; ++i) {
      std::fill_n(b.memory[0].begin() + i * 128, 128, std::byte{1});
      b.post(b.write(i * 128, 128, 2, i));
      b.network.advance_to(b.network.now() + microseconds(1));
    }
    b.poll(1);
    const size_t before = b.sink[1].heard.size();
    b.host(1).kill_path(b.link[1], 2, 0);
    std::vector<std::byte> at_kill;
    while (b.network.next_event() != Time::never()) {
      b.network.advance_to(b.network.next_event());
      b.poll(1);
      if (at_kill.empty() && b.sink[1].count(Heard::Kind::kPathChange) == 1) at_kill = b.memory[1];
    }
    ASSERT_FALSE(at_kill.empty()) << "seed " << seed << ": the kill was never answered";
    EXPECT_TRUE(at_kill == b.memory[1]) << "seed " << seed << ": something landed after kKilled";
    const Heard& last = b.sink[1].heard.back();
    ASSERT_EQ(last.kind, Heard::Kind::kPathChange) << "seed " << seed;
    EXPECT_EQ(last.change.what, PathChange::What::kKilled);
    EXPECT_EQ(last.change.path, 2);
    EXPECT_EQ(last.change.epoch, 0u);
    for (uint32_t i = 0; i < 100; ++i) {
      const std::vector<uint32_t> told = b.sink[1].immediates();
      const bool announced = std::find(told.begin(), told.end(), i) != told.end();
      ASSERT_EQ(b.memory[1][i * 128] == std::byte{1}, announced) << "seed " << seed;
    }
    discarded += b.network.counters().killed;
    landed_after_the_call += b.sink[1].heard.size() - 1 - before;
    EXPECT_EQ(b.network.counters().violations, 0u);
  }
  EXPECT_GT(discarded, 100u);
  EXPECT_GT(landed_after_the_call, 100u) << "a kill takes its time";
}

TEST(SimKill, ANewEpochCarriesOnAndTheOldStaysDead) {
  Bench b(placing());
  b.post(b.write(0, 128, 0, 1));
  b.host(1).kill_path(b.link[1], 0, 0);
  b.host(0).kill_path(b.link[0], 0, 0);
  b.settle();
  EXPECT_EQ(b.sink[0].count(Heard::Kind::kPathChange), 1u);
  EXPECT_EQ(b.sink[1].count(Heard::Kind::kPathChange), 1u);
  b.sink[1].heard.clear();

  // The sender is first: the other end does not know the epoch yet.
  b.host(0).reopen_path(b.link[0], 0, 1);
  b.post(b.write(0, 128, 0, 2, 1));
  b.settle();
  EXPECT_TRUE(b.sink[1].heard.empty());
  b.host(1).reopen_path(b.link[1], 0, 1);
  b.post(b.write(0, 128, 0, 3, 1));
  b.post(b.write(0, 128, 0, 4, 0));  // flushed
  b.settle();
  EXPECT_EQ(b.sink[1].immediates(), std::vector<uint32_t>{3});
  EXPECT_EQ(b.sink[1].heard[0].landing.epoch, 1u);
  EXPECT_EQ(b.network.counters().flushed, 1u);
  EXPECT_EQ(b.network.counters().violations, 0u) << b.network.first_violation();
  EXPECT_EQ(b.sink[0].count(Heard::Kind::kCompletion), 4u) << "a flushed post is completed";

  b.host(1).reopen_path(b.link[1], 0, 1);  // said again: nothing
  EXPECT_EQ(b.network.counters().violations, 0u);
  b.host(1).reopen_path(b.link[1], 0, 0);
  EXPECT_EQ(b.network.counters().violations, 1u) << "a killed epoch cannot come back";
}

TEST(SimKill, WhatIsLeftOfTheOldEpochDoesNotLandInTheNewOne) {
  SimConfig c = placing();
  c.delay = milliseconds(1);
  c.nic_delay = {0};
  Bench b(c);
  std::fill_n(b.memory[0].begin(), 128, std::byte{1});
  b.post(b.write(0, 128, 0, 1));
  b.network.advance_to(Time{} + microseconds(10));
  b.host(1).kill_path(b.link[1], 0, 0);
  b.network.advance_to(Time{} + microseconds(500));
  b.poll(1);
  ASSERT_EQ(b.sink[1].count(Heard::Kind::kPathChange), 1u);
  b.host(1).reopen_path(b.link[1], 0, 1);
  b.settle();
  EXPECT_TRUE(b.sink[1].immediates().empty());
  EXPECT_EQ(b.memory[1][0], std::byte{0});
  EXPECT_EQ(b.network.counters().killed, 1u);
}

TEST(SimKill, AKillOfAnEpochThatIsNotOpenIsAnsweredAndRemembered) {
  Bench b(placing());
  b.host(1).kill_path(b.link[1], 0, 0);
  b.host(1).kill_path(b.link[1], 0, 0);
  b.host(1).kill_path(b.link[1], 0, 1);  // before it was opened here
  b.settle();
  EXPECT_EQ(b.sink[1].count(Heard::Kind::kPathChange), 3u);
  b.host(1).reopen_path(b.link[1], 0, 1);
  EXPECT_EQ(b.network.counters().violations, 1u);
  b.host(1).reopen_path(b.link[1], 0, 2);
  EXPECT_EQ(b.network.counters().violations, 1u);
}

TEST(SimKill, TheKillersOwnUnreadPostsAreFlushedBeforeItIsTold) {
  SimConfig c = placing();
  c.nic_delay = milliseconds(10);
  c.faults.kill_within = {0};
  Bench b(c);
  for (uint32_t i = 0; i < 50; ++i) b.post(b.write(i * 128, 128, 0, i));
  b.host(0).kill_path(b.link[0], 0, 0);
  b.network.advance_to(Time{} + microseconds(1));
  b.poll(0);
  ASSERT_EQ(b.sink[0].heard.size(), 51u);
  for (uint32_t i = 0; i < 50; ++i) EXPECT_EQ(b.sink[0].heard[i].completion.cookie, 1000u + i);
  EXPECT_EQ(b.sink[0].heard.back().kind, Heard::Kind::kPathChange);
  std::fill(b.memory[0].begin(), b.memory[0].end(), std::byte{8});
  b.settle();
  EXPECT_EQ(std::count(b.memory[1].begin(), b.memory[1].end(), std::byte{8}), 0)
      << "a source was read after its completion";
  EXPECT_EQ(b.sink[0].count(Heard::Kind::kCompletion), 50u) << "completed twice";
}

TEST(SimKill, WhatHasLeftTheKillerStillLandsAtTheOtherEnd) {
  SimConfig c = placing();
  c.nic_delay = {0};
  c.delay = milliseconds(1);
  Bench b(c);
  b.post(b.write(0, 128, 0, 5));
  b.host(0).kill_path(b.link[0], 0, 0);
  b.settle();
  EXPECT_EQ(b.sink[1].immediates(), std::vector<uint32_t>{5})
      << "a sender that kills its own end knows nothing of the network";
}

TEST(SimKill, OtherPathsAndLinksAreNotTouched) {
  Bench b(placing());
  b.host(1).kill_path(b.link[1], 0, 0);
  b.settle();
  for (uint32_t i = 1; i < 8; ++i) b.post(b.write(0, 128, static_cast<PathIndex>(i), i));
  b.settle();
  EXPECT_EQ(b.sink[1].immediates().size(), 7u);
}

}  // namespace
}  // namespace weft::sim
