// SPDX-License-Identifier: Apache-2.0
// The simulated network in datagram mode: that it is deterministic, and as bad as it was told to
// be.
#include <algorithm>
#include <set>

#include "tests/unit/sim/bench.h"

namespace weft::sim {
namespace {

SimConfig rough() {
  SimConfig c;
  c.max_in_flight = kMaxPackets;
  c.receive_datagrams = kMaxPackets;
  c.faults.loss = 0.1;
  c.faults.duplicate = 0.05;
  c.faults.reorder = 0.1;
  return c;
}

uint64_t hash_of_run(const SimConfig& config, uint64_t seed) {
  Bench b(config, seed);
  for (uint32_t i = 0; i < 2000; ++i) {
    b.post(b.datagram(i, 100, static_cast<PathIndex>(i % 8)));
    b.post(b.control(i, static_cast<PathIndex>(i % 3)));
    if (i % 10 == 0) b.network.advance_to(b.network.now() + microseconds(7));
    if (i % 50 == 0) b.poll(1);
  }
  b.settle();
  return b.network.trace_hash();
}

TEST(SimDatagram, SameSeedSameTrace) {
  EXPECT_EQ(hash_of_run(rough(), 7), hash_of_run(rough(), 7));
  std::set<uint64_t> hashes;
  for (uint64_t seed = 0; seed < 50; ++seed) hashes.insert(hash_of_run(rough(), seed));
  EXPECT_EQ(hashes.size(), 50u) << "seeds that give the same run";
}

TEST(SimDatagram, WithoutFaultsEverythingArrivesOnceAndWhole) {
  SimConfig c;
  Bench b(c);
  for (size_t i = 0; i < 1408; ++i) b.memory[0][i] = static_cast<std::byte>(i * 7);
  b.sink[1].destination = b.memory[1].data() + 64;
  b.sink[1].header_bytes = 4;
  EXPECT_EQ(b.post(b.datagram(99, 1408)), 1u);
  // Copied when it was posted: what the source becomes then is nobody's concern.
  const std::vector<std::byte> sent(b.memory[0].begin(), b.memory[0].begin() + 1408);
  std::fill(b.memory[0].begin(), b.memory[0].end(), std::byte{0xee});
  b.settle();
  ASSERT_EQ(b.sink[1].heard.size(), 1u);
  EXPECT_EQ(number_in(b.sink[1].heard[0]), 99u);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), b.memory[1].begin() + 64));
  EXPECT_EQ(b.memory[1][63], std::byte{0});
  EXPECT_EQ(b.memory[1][64 + 1408], std::byte{0});
  EXPECT_TRUE(b.sink[0].heard.empty());
  EXPECT_EQ(b.network.in_flight(), 0u);
}

TEST(SimDatagram, DelayIsWithinItsBounds) {
  SimConfig c;
  c.path_skew = microseconds(10);
  for (PathIndex path : {0, 3}) {
    Bench b(c);
    b.post(b.datagram(0, 0, path));
    const Duration took = b.network.next_event() - Time{0};
    const Duration base = c.delay + c.path_skew * path;
    EXPECT_GE(took, base);
    EXPECT_LE(took, base + c.jitter + c.nic_delay);
  }
}

TEST(SimDatagram, RatesAreRoughlyThoseAsked) {
  Bench b(rough(), 3);
  const int n = 20000;
  for (uint32_t i = 0; i < n; ++i) b.post(b.datagram(i, 0, static_cast<PathIndex>(i % 8)));
  b.settle();
  const SimCounters& k = b.network.counters();
  EXPECT_EQ(k.posted, static_cast<uint64_t>(n));
  EXPECT_NEAR(static_cast<double>(k.lost), 0.1 * n, 0.01 * n);
  EXPECT_NEAR(static_cast<double>(k.duplicated), 0.05 * n, 0.01 * n);
  EXPECT_EQ(k.arrived, k.posted - k.lost + k.duplicated);
  EXPECT_EQ(b.sink[1].heard.size(), k.arrived);
  EXPECT_EQ(k.violations, 0u);
  EXPECT_EQ(b.network.in_flight(), 0u);
}

TEST(SimDatagram, ReorderingHappensWithinAPath) {
  SimConfig c;
  c.faults.reorder = 0.2;
  c.jitter = {0};
  c.nic_delay = {0};
  Bench b(c, 5);
  for (uint32_t i = 0; i < 1000; ++i) {
    b.post(b.datagram(i));
    b.network.advance_to(b.network.now() + microseconds(1));
  }
  b.settle();
  size_t behind = 0;
  for (size_t i = 1; i < b.sink[1].heard.size(); ++i) {
    behind += number_in(b.sink[1].heard[i]) < number_in(b.sink[1].heard[i - 1]);
  }
  EXPECT_GT(behind, 100u);
}

TEST(SimDatagram, MarksAreSeenAndAnnounced) {
  class Marks final : public FabricSink {
   public:
    int marked = 0;
    void receive(std::span<Datagram> batch) override {
      for (const Datagram& d : batch) marked += d.congestion_marked;
    }
    void arrived(std::span<const Datagram>) override {}
    void landed(std::span<const Landing>) override {}
    void completed(std::span<const Completion>) override {}
    void path_changed(std::span<const PathChange>) override {}
  };
  SimConfig c;
  c.faults.mark = 0.5;
  Bench b(c);
  EXPECT_TRUE(b.host(0).offloads().ecn);
  for (uint32_t i = 0; i < 1000; ++i) b.post(b.datagram(i));
  b.network.advance_to(Time{} + seconds(1));
  Marks marks;
  b.host(1).poll(b.network.now(), SIZE_MAX, marks);
  EXPECT_NEAR(marks.marked, 500, 80);
}

TEST(SimDatagram, ABlackholeSwallowsOnePathInOneDirectionForItsTime) {
  SimConfig c;
  c.blackholes.push_back({2, 0, Time{} + milliseconds(1), Time{} + milliseconds(2)});
  Bench b(c);
  const auto through = [&](int from, PathIndex path) {
    SegmentPost p = b.datagram(0, 0, path);
    p.link = b.link[from];
    b.host(from).post(b.network.now(), {&p, 1});
    b.network.advance_to(b.network.now() + microseconds(100));
    ListeningSink sink;
    b.host(1 - from).poll(b.network.now(), 10, sink);
    return sink.heard.size() == 1;
  };
  EXPECT_TRUE(through(0, 2));
  b.network.advance_to(Time{} + milliseconds(1));
  EXPECT_FALSE(through(0, 2));
  EXPECT_TRUE(through(0, 1));
  EXPECT_TRUE(through(1, 2));
  b.network.advance_to(Time{} + milliseconds(2));
  EXPECT_TRUE(through(0, 2));
  EXPECT_EQ(b.network.counters().lost, 1u);
}

TEST(SimDatagram, WhatIsUnderWayWhenTheHoleOpensIsLostToo) {
  SimConfig c;
  c.blackholes.push_back({-1, -1, Time{} + microseconds(10)});
  Bench b(c);
  b.post(b.datagram(0));
  b.settle();
  EXPECT_TRUE(b.sink[1].heard.empty());
  EXPECT_EQ(b.network.counters().lost, 1u);
}

TEST(SimDatagram, AFullReceiverLosesWhatItCannotHold) {
  SimConfig c;
  c.receive_datagrams = 10;
  Bench b(c);
  for (uint32_t i = 0; i < 25; ++i) b.post(b.datagram(i));
  b.settle();
  EXPECT_EQ(b.sink[1].heard.size(), 10u);
  EXPECT_EQ(b.network.counters().overruns, 15u);
  for (uint32_t i = 0; i < 5; ++i) b.post(b.datagram(i));
  b.settle();
  EXPECT_EQ(b.sink[1].heard.size(), 15u) << "polling makes room again";
}

}  // namespace
}  // namespace weft::sim
