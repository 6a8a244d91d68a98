// SPDX-License-Identifier: Apache-2.0
// The simulated network in placing mode, unreliable: what lands, when, in what order, and what is
// refused.
#include <algorithm>

#include "tests/unit/sim/bench.h"

namespace weft::sim {
namespace {

TEST(SimPlacing, AWriteLandsWholeAndIsAnnouncedAndCompleted) {
  Bench b(placing());
  for (size_t i = 0; i < 65536; ++i) b.memory[0][i] = static_cast<std::byte>(i * 13 + 1);
  EXPECT_EQ(b.post(b.write(0, 65536, 3, 77)), 1u);
  b.settle();
  ASSERT_EQ(b.sink[1].heard.size(), 1u);
  const Landing& l = b.sink[1].heard[0].landing;
  EXPECT_EQ(l.link, b.link[1]);
  EXPECT_EQ(l.path, 3);
  EXPECT_EQ(l.epoch, 0u);
  EXPECT_EQ(l.immediate, 77u);
  EXPECT_EQ(l.bytes, 65536u);
  EXPECT_TRUE(std::equal(b.memory[0].begin(), b.memory[0].begin() + 65536, b.memory[1].begin()));
  ASSERT_EQ(b.sink[0].heard.size(), 1u);
  EXPECT_EQ(b.sink[0].heard[0].completion.cookie, 1077u);
  EXPECT_EQ(b.network.counters().violations, 0u) << b.network.first_violation();
  EXPECT_EQ(b.network.in_flight(), 0u);
}

TEST(SimPlacing, AProbeIsAnnouncedWithNoBytes) {
  Bench b(placing());
  b.post(b.write(0, 0, 1, 0xc0000000u));
  b.settle();
  ASSERT_EQ(b.sink[1].immediates(), std::vector<uint32_t>{0xc0000000u});
  EXPECT_EQ(b.sink[1].heard[0].landing.bytes, 0u);
  EXPECT_EQ(b.network.counters().violations, 0u);
}

// Whoever reuses a source before its completion sends what it wrote into it.
TEST(SimPlacing, TheSourceIsReadAfterThePostAndNotAfterTheCompletion) {
  SimConfig c = placing();
  c.nic_delay = microseconds(10);
  Bench b(c, 11);
  int changed = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    b.memory[0][i * 128] = std::byte{1};
    b.post(b.write(i * 128, 128, static_cast<PathIndex>(i % 8), i));
  }
  for (uint32_t i = 0; i < 200; ++i) b.memory[0][i * 128] = std::byte{2};
  b.settle();
  for (uint32_t i = 0; i < 200; ++i) changed += b.memory[1][i * 128] == std::byte{2};
  EXPECT_GT(changed, 190);

  // The honest sender.
  for (uint32_t i = 0; i < 200; ++i) {
    b.memory[0][i * 128] = std::byte{3};
    b.post(b.write(i * 128, 128, static_cast<PathIndex>(i % 8), i));
  }
  size_t seen = b.sink[0].heard.size();
  for (int step = 0; step < 100000 && b.network.next_event() != Time::never(); ++step) {
    b.network.advance_to(b.network.next_event());
    b.poll(0);
    for (; seen < b.sink[0].heard.size(); ++seen) {
      b.memory[0][(b.sink[0].heard[seen].completion.cookie - 1000) * 128] = std::byte{4};
    }
  }
  for (uint32_t i = 0; i < 200; ++i) ASSERT_EQ(b.memory[1][i * 128], std::byte{3}) << i;
}

TEST(SimPlacing, ReadsHappenAtDifferentMoments) {
  SimConfig c = placing();
  c.nic_delay = microseconds(100);
  Bench b(c, 2);
  for (uint32_t i = 0; i < 400; ++i) b.post(b.write(i * 128, 128, 0, i));
  b.network.advance_to(Time{} + microseconds(25));
  std::fill(b.memory[0].begin(), b.memory[0].end(), std::byte{9});
  b.settle();
  int late = 0;
  for (uint32_t i = 0; i < 400; ++i) late += b.memory[1][i * 128] == std::byte{9};
  EXPECT_GT(late, 40);
  EXPECT_LT(late, 360);
}

TEST(SimPlacing, AnOrderedPathKeepsItsOrderEvenWhenLateAndLossy) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimConfig c = placing();
    c.faults.late = 0.3;
    c.faults.loss = 0.1;
    Bench b(c, seed);
    for (uint32_t i = 0; i < 500; ++i) {
      b.post(b.write(i * 128, 128, 5, i));
      b.network.advance_to(b.network.now() + microseconds(1));
    }
    b.settle();
    const std::vector<uint32_t> order = b.sink[1].immediates();
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "seed " << seed;
    EXPECT_GT(b.network.counters().late, 100u);
    EXPECT_EQ(order.size() + b.network.counters().lost, 500u);
    EXPECT_EQ(b.sink[0].count(Heard::Kind::kCompletion), 500u) << "lost writes are completed too";
  }
}

TEST(SimPlacing, AnUnorderedPathLetsWritesOvertake) {
  SimConfig c = placing();
  c.ordered_path = false;
  c.faults.late = 0.3;
  Bench b(c, 4);
  EXPECT_FALSE(b.host(0).offloads().ordered_path);
  for (uint32_t i = 0; i < 500; ++i) {
    b.post(b.write(i * 128, 128, 5, i));
    b.network.advance_to(b.network.now() + microseconds(1));
  }
  b.settle();
  std::vector<uint32_t> order = b.sink[1].immediates();
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  EXPECT_EQ(std::unique(order.begin(), order.end()) - order.begin(), 500) << "never twice";
}

TEST(SimPlacing, ARehashBreaksOrderOnce) {
  SimConfig c = placing();
  c.jitter = c.nic_delay = {0};
  c.delay = microseconds(100);
  c.rehashes.push_back({0, Time{} + microseconds(50), microseconds(20)});
  Bench b(c);
  for (uint32_t i = 0; i < 100; ++i) {
    b.post(b.write(i * 128, 128, 0, i));
    b.network.advance_to(b.network.now() + microseconds(1));
  }
  b.settle();
  std::vector<uint32_t> order = b.sink[1].immediates();
  ASSERT_EQ(order.size(), 100u);
  EXPECT_EQ(order.front(), 50u);
  std::stable_partition(order.begin(), order.end(), [](uint32_t i) { return i < 50; });
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(SimPlacing, LossTakesWholeWritesAndNeverDuplicates) {
  SimConfig c = placing();
  c.faults.loss = 0.1;
  c.faults.duplicate = 1.0;  // of no concern to writes
  Bench b(c, 9);
  const uint32_t n = 5000;
  for (uint32_t i = 0; i < n; ++i) {
    b.memory[0][i * 128] = b.memory[0][i * 128 + 127] = std::byte{5};
    b.post(b.write(i * 128, 128, static_cast<PathIndex>(i % 8), i));
  }
  b.settle();
  const std::vector<uint32_t> got = b.sink[1].immediates();
  EXPECT_NEAR(static_cast<double>(b.network.counters().lost), 0.1 * n, 0.02 * n);
  EXPECT_EQ(got.size(), n - b.network.counters().lost);
  std::vector<bool> landed(n);
  for (uint32_t i : got) {
    EXPECT_FALSE(landed[i]) << i;
    landed[i] = true;
  }
  for (uint32_t i = 0; i < n; ++i) {
    ASSERT_EQ(b.memory[1][i * 128] == std::byte{5}, landed[i]);
    ASSERT_EQ(b.memory[1][i * 128 + 127] == std::byte{5}, landed[i]);
  }
}

TEST(SimPlacing, ALostWriteMayHaveWrittenAPrefix) {
  SimConfig c = placing();
  c.faults.loss = 1.0;
  c.faults.partial_writes = true;
  Bench b(c, 6);
  std::fill(b.memory[0].begin(), b.memory[0].end(), std::byte{7});
  for (uint32_t i = 0; i < 200; ++i) b.post(b.write(i * 1024, 1024, 0, i));
  b.settle();
  EXPECT_TRUE(b.sink[1].heard.empty()) << "it is not announced";
  int partial = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    const auto first = b.memory[1].begin() + i * 1024, last = first + 1024;
    const auto end = std::find(first, last, std::byte{0});
    EXPECT_TRUE(std::all_of(end, last, [](std::byte x) { return x == std::byte{0}; })) << i;
    EXPECT_NE(end, last) << "never all of it";
    partial += end != first;
  }
  EXPECT_GT(partial, 150);
}

TEST(SimPlacing, BadKeysAndRangesAreRefusedAndCounted) {
  Bench b(placing());
  std::fill(b.memory[0].begin(), b.memory[0].end(), std::byte{1});
  std::vector<SegmentPost> bad;
  bad.push_back(b.write(0, 128));
  bad.back().remote_key ^= 1;  // another region
  bad.push_back(b.write(0, 128));
  bad.back().remote_key ^= uint64_t{1} << 40;  // a key of no region
  bad.push_back(b.write(Bench::kMemory - 128, 128));
  bad.back().remote_address += 1;  // one past the end
  bad.push_back(b.write(0, 128));
  bad.back().remote_address -= 1;
  bad.push_back(b.write(0, 128));
  bad.back().remote_address = UINT64_MAX - 10;  // wraps
  bad.push_back(b.write(0, 128));
  bad.back().local_key = 99;
  bad.push_back(b.write(Bench::kMemory - 64, 128));  // source past the end
  bad.push_back(b.write(0, 128));
  bad.back().source = nullptr;
  bad.push_back(b.write(0, 65537));
  bad.push_back(b.write(0, 128, 8));  // no such path
  bad.push_back(b.write(0, 128));
  bad.back().link = 7;
  bad.push_back(b.write(0, 128, 0, 0, 1));  // an epoch that nobody opened
  for (size_t i = 0; i < bad.size(); ++i) {
    b.post(bad[i]);
    b.settle();
    EXPECT_EQ(b.network.counters().violations, i + 1) << "case " << i;
  }
  EXPECT_TRUE(b.sink[1].heard.empty());
  EXPECT_EQ(std::count(b.memory[1].begin(), b.memory[1].end(), std::byte{1}), 0);
  EXPECT_NE(b.network.first_violation().find("remote key"), std::string::npos);
}

TEST(SimPlacing, AWriteIntoADeregisteredRegionIsRefused) {
  Bench b(placing());
  std::fill(b.memory[0].begin(), b.memory[0].end(), std::byte{1});
  b.post(b.write(0, 128));
  b.network.advance_to(Time{} + microseconds(10));
  b.host(1).deregister_memory(b.keys[1]);
  b.settle();
  EXPECT_EQ(b.network.counters().violations, 1u);
  EXPECT_EQ(b.memory[1][0], std::byte{0});
  b.host(1).deregister_memory(b.keys[1]);
  EXPECT_EQ(b.network.counters().violations, 2u) << "twice";
}

TEST(SimPlacing, ASourceDeregisteredBeforeItsCompletionIsCounted) {
  SimConfig c = placing();
  c.nic_delay = milliseconds(1);
  Bench b(c);
  b.post(b.write(0, 128));
  b.host(0).deregister_memory(b.keys[0]);
  b.settle();
  EXPECT_EQ(b.network.counters().violations, 1u);
  EXPECT_TRUE(b.sink[1].heard.empty());
}

TEST(SimPlacing, MoreThanTheReceiveDepthIsLost) {
  SimConfig c = placing();
  c.receive_depth = 4;
  Bench b(c);
  for (uint32_t i = 0; i < 6; ++i) b.post(b.write(i * 128, 128, 0, i));
  for (uint32_t i = 6; i < 8; ++i) b.post(b.write(i * 128, 128, 1, i));
  b.settle();
  EXPECT_EQ(b.sink[1].heard.size(), 6u);
  EXPECT_EQ(b.network.counters().overruns, 2u);
}

TEST(SimPlacing, ControlIsLostDuplicatedAndReordered) {
  SimConfig c = placing();
  c.faults.control_loss = 0.1;
  c.faults.control_duplicate = 0.1;
  c.faults.control_reorder = 0.1;
  Bench b(c, 8);
  for (uint32_t i = 0; i < 5000; ++i) {
    b.post(b.control(i));
    b.network.advance_to(b.network.now() + microseconds(1));
  }
  b.settle();
  const SimCounters& k = b.network.counters();
  EXPECT_NEAR(static_cast<double>(k.lost), 500, 100);
  EXPECT_NEAR(static_cast<double>(k.duplicated), 500, 100);
  EXPECT_EQ(b.sink[1].heard.size(), 5000 - k.lost + k.duplicated);
  size_t behind = 0;
  for (size_t i = 1; i < b.sink[1].heard.size(); ++i) {
    behind += number_in(b.sink[1].heard[i]) < number_in(b.sink[1].heard[i - 1]);
  }
  EXPECT_GT(behind, 100u);
}

}  // namespace
}  // namespace weft::sim
