// SPDX-License-Identifier: Apache-2.0
// The rest of the contract: addresses are checked, posts are taken as a prefix, poll keeps its
// budget, a paused host hears nothing, a closed link is gone.
#include <algorithm>

#include "tests/unit/sim/bench.h"

namespace weft::sim {
namespace {

TEST(SimFabric, AHostileAddressIsRefusedInWords) {
  SimNetwork network(placing(), 1);
  LinkAddress mine, theirs;
  const LinkId link = *network.host(0).create_link(&mine);
  (void)*network.host(1).create_link(&theirs);
  EXPECT_EQ(theirs.size(), 16u);
  for (size_t length = 0; length < theirs.size(); ++length) {
    EXPECT_FALSE(network.host(0).connect_link(link, std::span(theirs).first(length)).ok())
        << length;
  }
  for (size_t byte = 0; byte < 13; ++byte) {
    LinkAddress wrong = theirs;
    wrong[byte] ^= std::byte{0x41};
    const Status s = network.host(0).connect_link(link, wrong);
    EXPECT_FALSE(s.ok()) << "byte " << byte;
    EXPECT_EQ(s.code(), Code::kRemote);
    EXPECT_FALSE(s.words().empty());
  }
  EXPECT_FALSE(network.host(0).connect_link(link, mine).ok()) << "itself";
  EXPECT_FALSE(network.host(0).connect_link(link + 1, theirs).ok()) << "a link that does not exist";
  EXPECT_EQ(network.host(0).paths(link), 0);
  EXPECT_TRUE(network.host(0).connect_link(link, theirs).ok());
  EXPECT_EQ(network.host(0).paths(link), 8);
  EXPECT_FALSE(network.host(0).connect_link(link, theirs).ok()) << "twice";
}

TEST(SimFabric, APostBeforeTheLinkIsConnectedIsCounted) {
  SimNetwork network(SimConfig{}, 1);
  LinkAddress address;
  SegmentPost p{};
  p.link = *network.host(0).create_link(&address);
  p.header_bytes = 4;
  network.host(0).post(Time{}, {&p, 1});
  EXPECT_EQ(network.counters().violations, 1u);
}

TEST(SimFabric, PostTakesAPrefix) {
  SimConfig c;
  c.max_posts_per_call = 16;
  c.faults.refuse = 0.5;
  Bench b(c, 3);
  std::vector<SegmentPost> batch;
  for (uint32_t i = 0; i < 100; ++i) batch.push_back(b.datagram(i));
  size_t at = 0;
  std::vector<size_t> sizes;
  while (at < batch.size() && sizes.size() < 1000) {
    sizes.push_back(b.host(0).post(b.network.now(), std::span(batch).subspan(at)));
    at += sizes.back();
  }
  EXPECT_EQ(at, batch.size());
  EXPECT_EQ(*std::max_element(sizes.begin(), sizes.end()), 16u);
  EXPECT_LT(*std::min_element(sizes.begin(), sizes.end()), 16u);
  b.settle();
  std::vector<uint32_t> got;
  for (const Heard& h : b.sink[1].heard) got.push_back(number_in(h));
  std::sort(got.begin(), got.end());
  ASSERT_EQ(got.size(), 100u);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(got[i], i);
}

TEST(SimFabric, AFullNetworkTakesNoMore) {
  SimConfig c;
  c.max_in_flight = 10;
  Bench b(c);
  std::vector<SegmentPost> batch(50, b.datagram(1));
  EXPECT_EQ(b.host(0).post(b.network.now(), batch), 10u);
  EXPECT_EQ(b.post(b.control(1)), 0u);
  b.settle();
  EXPECT_EQ(b.host(0).post(b.network.now(), batch), 10u);
}

TEST(SimFabric, PollKeepsItsBudgetAndItsOrder) {
  SimConfig c = placing();
  c.jitter = c.nic_delay = {0};
  Bench b(c);
  for (uint32_t i = 0; i < 300; ++i) {
    b.post(b.write(0, 0, 0, i));
    if (i % 7 == 0) b.post(b.control(i));
  }
  b.network.advance_to(Time{} + seconds(1));
  size_t total = 0;
  for (size_t budget : {1, 5, 64, 65, 100}) {
    EXPECT_EQ(b.host(1).poll(b.network.now(), budget, b.sink[1]), budget);
    total += budget;
    EXPECT_EQ(b.sink[1].heard.size(), total);
  }
  b.poll(1);
  EXPECT_EQ(b.sink[1].heard.size(), 343u);
  EXPECT_LE(b.sink[1].largest_batch, 64u);
  const std::vector<uint32_t> order = b.sink[1].immediates();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(b.network.pending(1), 0u);
}

TEST(SimFabric, APausedHostHearsLater) {
  SimConfig c;
  c.pauses.push_back({1, Time{}, Time{} + milliseconds(5)});
  Bench b(c);
  b.post(b.datagram(1));
  b.network.advance_to(Time{} + milliseconds(4));
  EXPECT_TRUE(b.network.paused(1));
  EXPECT_FALSE(b.network.paused(0));
  b.poll(1);
  EXPECT_TRUE(b.sink[1].heard.empty());
  EXPECT_EQ(b.network.pending(1), 1u);
  b.network.advance_to(Time{} + milliseconds(5));
  b.poll(1);
  EXPECT_EQ(b.sink[1].heard.size(), 1u);
}

TEST(SimFabric, AClosedLinkIsReadAndHeardNoMore) {
  SimConfig c = placing();
  c.nic_delay = milliseconds(1);
  Bench b(c);
  for (uint32_t i = 0; i < 10; ++i) b.post(b.write(i * 128, 128, static_cast<PathIndex>(i % 8), i));
  b.host(0).close_link(b.link[0]);
  std::fill(b.memory[0].begin(), b.memory[0].end(), std::byte{3});
  b.host(0).close_link(b.link[0]);
  b.settle();
  EXPECT_TRUE(b.sink[0].heard.empty());
  EXPECT_EQ(std::count(b.memory[1].begin(), b.memory[1].end(), std::byte{3}), 0);
  EXPECT_EQ(b.network.in_flight(), 0u);
  EXPECT_EQ(b.host(0).paths(b.link[0]), 0);
}

TEST(SimFabric, ClosingALinkTakesItsNewsAwayAndNoOther) {
  Bench b(placing());
  LinkAddress address[2];
  LinkId link[2];
  for (int i : {0, 1}) link[i] = *b.host(i).create_link(&address[i]);
  for (int i : {0, 1}) ASSERT_TRUE(b.host(i).connect_link(link[i], address[1 - i]).ok());
  SegmentPost other = b.write(0, 128, 0, 42);
  other.link = link[0];
  b.post(b.write(128, 128, 0, 43));
  b.post(other);
  b.host(1).kill_path(b.link[1], 1, 0);
  b.network.advance_to(Time{} + seconds(1));
  EXPECT_EQ(b.network.pending(1), 3u);
  b.host(1).close_link(b.link[1]);
  b.settle();
  ASSERT_EQ(b.sink[1].heard.size(), 1u);
  EXPECT_EQ(b.sink[1].heard[0].landing.immediate, 42u);
  EXPECT_EQ(b.sink[0].heard.size(), 2u) << "the other end still hears";
}

TEST(SimFabric, AWriteLandsOnlyOnALinkThatIsConnectedToItsOwn) {
  Bench b(placing());
  LinkAddress first[2], second;
  const LinkId mine = *b.host(0).create_link(&first[0]);
  const LinkId theirs = *b.host(1).create_link(&first[1]);
  (void)*b.host(0).create_link(&second);
  ASSERT_TRUE(b.host(0).connect_link(mine, first[1]).ok());
  SegmentPost p = b.write(0, 128);
  p.link = mine;
  b.post(p);
  b.settle();
  EXPECT_TRUE(b.sink[1].heard.empty()) << "not connected yet";
  ASSERT_TRUE(b.host(1).connect_link(theirs, second).ok());  // to another link of host 0
  b.post(p);
  b.settle();
  EXPECT_TRUE(b.sink[1].heard.empty());
  EXPECT_EQ(b.network.counters().killed, 2u);
}

TEST(SimFabric, LinksDoNotHearEachOther) {
  Bench b(placing());
  LinkAddress address[2];
  LinkId link[2];
  for (int i : {0, 1}) link[i] = *b.host(i).create_link(&address[i]);
  for (int i : {0, 1}) ASSERT_TRUE(b.host(i).connect_link(link[i], address[1 - i]).ok());
  SegmentPost second = b.write(0, 128, 0, 42);
  second.link = link[0];
  b.post(second);
  b.post(b.write(128, 128, 0, 43));
  b.host(1).kill_path(b.link[1], 1, 0);
  b.settle();
  for (const Heard& h : b.sink[1].heard) {
    if (h.kind == Heard::Kind::kLanding) {
      EXPECT_EQ(h.landing.link, h.landing.immediate == 42 ? link[1] : b.link[1]);
    }
  }
  EXPECT_EQ(b.sink[1].immediates().size(), 2u);
}

TEST(SimFabric, SenselessConfigurationIsClamped) {
  SimConfig c = placing();
  c.paths = 100000;
  c.max_segment_bytes = 1000;
  c.max_in_flight = 1 << 30;
  SimNetwork network(c, 1);
  EXPECT_EQ(network.host(0).max_paths(), kMaxPaths);
  EXPECT_EQ(network.host(0).max_segment_bytes(), 896u);
  EXPECT_EQ(network.config().max_in_flight, kMaxPackets);
}

TEST(SimFabric, RegistrationRefusesWhatIsNoMemory) {
  SimNetwork network(placing(), 1);
  std::byte bytes[16];
  EXPECT_FALSE(network.host(0).register_memory({nullptr, 16}).ok());
  EXPECT_FALSE(network.host(0).register_memory({bytes, 0}).ok());
  EXPECT_FALSE(network.host(0).register_memory({bytes, UINT64_MAX}).ok());
  EXPECT_FALSE(network.host(0).register_memory({bytes, 16, MemoryKind::kDevice}).ok());
  EXPECT_TRUE(network.host(0).register_memory({bytes, 16}).ok());
}

}  // namespace
}  // namespace weft::sim
