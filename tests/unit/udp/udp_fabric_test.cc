// SPDX-License-Identifier: Apache-2.0
// What is particular to the UDP fabric; what every fabric must do is in tests/fabric.
#include <gtest/gtest.h>
#include <poll.h>

#include "tests/unit/udp/fabrics.h"

namespace weft {
namespace {

// Where each datagram is a message of its own, so that they can be counted.
class UdpFabricOneByOneTest : public UdpFabricTest {
 protected:
  UdpFabricOneByOneTest() : UdpFabricTest(UdpFeature::kOff) {}
};

TEST_F(UdpFabricTest, TrainsOnOneSocketStarveNoOther) {
  const std::vector<SegmentPost> burst(64, segment(0, 1));
  for (int i = 0; i < 40; ++i) ASSERT_EQ(a.fabric->post({}, burst), burst.size());
  const SegmentPost other = segment(1, 2);
  ASSERT_EQ(a.fabric->post({}, {&other, 1}), 1u);
  for (int polls = 0; polls < 30 && sink.seen[2] == 0; ++polls) {
    ASSERT_GT(b.fabric->poll({}, 64, sink), 0u);
  }
  EXPECT_EQ(sink.seen[2], 1u);
  EXPECT_LT(sink.seen[1], 40u * 64);
}

TEST_F(UdpFabricOneByOneTest, AFloodOnOneSocketStarvesNoOther) {
  const std::vector<SegmentPost> flood(150, segment(0, 1));
  ASSERT_EQ(a.fabric->post({}, flood), flood.size());
  const SegmentPost other = segment(1, 2);
  ASSERT_EQ(a.fabric->post({}, {&other, 1}), 1u);
  EXPECT_EQ(b.fabric->poll({}, 20, sink), 20u);
  EXPECT_EQ(sink.seen[2], 1u);
}

TEST_F(UdpFabricTest, ALinkHasAPathForEachPortOfTheSideWithMore) {
  EXPECT_EQ(a.fabric->paths(a.link), 5);
  EXPECT_EQ(b.fabric->paths(b.link), 5);
}

TEST_F(UdpFabricTest, APathIsItsPairOfPorts) {
  // Local sockets 0, 1, 2, 0, 1 of a; remote ports 0 to 4.
  PlainPeer peer(a, 5);
  std::vector<SegmentPost> posts;
  for (PathIndex p : {0, 3, 0, 3, 1, 4, 2, 2}) {
    posts.push_back(segment(p, static_cast<uint8_t>(p)));
    posts.back().link = peer.link;
  }
  ASSERT_EQ(a.fabric->post({}, posts), posts.size());
  const auto ours = udp::decode_address(a.address);
  for (size_t p = 0; p < peer.ports.size(); ++p) {
    std::vector<uint16_t> from;
    const auto got = udp::testing::drain(peer.ports[p].get(), &from);
    EXPECT_EQ(got.size(), p == 0 || p == 3 || p == 2 ? 2u : 1u) << "path " << p;
    for (const Bytes& d : got) EXPECT_EQ(d, Bytes(64, static_cast<std::byte>(p)));
    for (uint16_t port : from) EXPECT_EQ(port, ours->ports[p % 3]) << "path " << p;
  }
}

TEST_F(UdpFabricTest, TheSamePathOfAnotherLinkIsAnotherPath) {
  PlainPeer one(a, 1);
  PlainPeer two(a, 1);
  std::vector<SegmentPost> posts(4, segment(0, 1));
  for (size_t i = 0; i < posts.size(); ++i) posts[i].link = i % 2 == 0 ? one.link : two.link;
  ASSERT_EQ(a.fabric->post({}, posts), posts.size());
  EXPECT_EQ(udp::testing::drain(one.ports[0].get()).size(), 2u);
  EXPECT_EQ(udp::testing::drain(two.ports[0].get()).size(), 2u);
}

TEST_F(UdpFabricTest, ALinkThatWasNeverMadeCannotBeConnected) {
  EXPECT_EQ(a.fabric->connect_link(a.link + 1, b.address).code(), Code::kInvalidArgument);
  EXPECT_EQ(a.fabric->paths(a.link + 1), 0);
}

TEST_F(UdpFabricTest, PostsThatGoNowhereAreLostAndNeverStuck) {
  std::vector<SegmentPost> posts(7, segment(0, 1));
  posts[0].link = a.link + 1;
  posts[1].path = 5;
  posts[2].bytes = 128;  // without a source
  posts[4].header_bytes = 65;
  posts[6].bytes = a.fabric->max_segment_bytes() + 128;
  EXPECT_EQ(a.fabric->post({}, posts), posts.size());
  EXPECT_EQ(udp_counters(*a.fabric).misposted, 5u);
  EXPECT_EQ(b.fabric->poll({}, 100, sink), 2u);
}

TEST_F(UdpFabricTest, AClosedLinksIdIsNeverTheNextLinks) {
  const LinkId old = a.link;
  a.fabric->close_link(old);
  a.fabric->close_link(old);
  EXPECT_EQ(a.fabric->paths(old), 0);
  LinkAddress address;
  const auto next = a.fabric->create_link(&address);
  ASSERT_TRUE(next);
  EXPECT_NE(*next, old);
  const SegmentPost post = segment(0, 1);  // still names the old link
  EXPECT_EQ(a.fabric->post({}, {&post, 1}), 1u);
  EXPECT_EQ(b.fabric->poll({}, 100, sink), 0u);
}

TEST_F(UdpFabricTest, LinksRunOutInWordsAndComeBack) {
  std::vector<LinkId> links;
  LinkAddress address;
  Result<LinkId> next = Status();
  while (links.size() < 100000 && (next = a.fabric->create_link(&address))) links.push_back(*next);
  EXPECT_EQ(next.status().code(), Code::kNoResource);
  EXPECT_FALSE(next.status().words().empty());
  a.fabric->close_link(links.back());
  EXPECT_TRUE(a.fabric->create_link(&address));
}

TEST_F(UdpFabricTest, ALoopbackPeerOfAnotherHostIsRefusedInWords) {
  LinkAddress address;
  const LinkId link = *a.fabric->create_link(&address);
  const auto elsewhere = encode_address(udp::UdpAddress{IpAddress::v4(10, 0, 0, 1), {9}});
  const Status status = a.fabric->connect_link(link, elsewhere);
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_NE(status.words().find("loopback"), std::string::npos);
}

TEST_F(UdpFabricTest, APeerOfTheOtherFamilyIsRefusedInWords) {
  LinkAddress address;
  const LinkId link = *a.fabric->create_link(&address);
  const auto other = encode_address(udp::UdpAddress{IpAddress::v6_loopback(), {9}});
  const Status status = a.fabric->connect_link(link, other);
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_NE(status.words().find("WEFT_FAMILY"), std::string::npos) << status.words();
}

TEST_F(UdpFabricTest, DeviceMemoryIsRefusedInWords) {
  std::byte memory_of_a_gpu[64];
  const auto keys = a.fabric->register_memory({memory_of_a_gpu, 64, MemoryKind::kDevice});
  EXPECT_EQ(keys.status().code(), Code::kUnavailable);
}

TEST_F(UdpFabricOneByOneTest, CountsWhatTheKernelDropped) {
  const std::vector<SegmentPost> burst(64, segment(0, 1));
  uint64_t sent = 0;
  // Nobody reads: at some point the receive buffer is full.
  for (int i = 0; i < 4000 && udp_counters(*b.fabric).kernel_drops == 0; ++i) {
    sent += a.fabric->post({}, burst);
  }
  const uint64_t dropped = udp_counters(*b.fabric).kernel_drops;
  EXPECT_GT(dropped, 0u);
  for (uint64_t i = 0; i < sent && b.fabric->poll({}, 256, sink) != 0;) ++i;
  EXPECT_EQ(sink.seen[1] + dropped, sent);
}

TEST_F(UdpFabricTest, ItsDescriptorSleepsWhileThereIsNothing) {
  const auto descriptors = b.fabric->wait_descriptors();
  ASSERT_EQ(descriptors.size(), 1u);
  pollfd wait{descriptors[0], POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
  const SegmentPost post = segment(2, 1);
  ASSERT_EQ(a.fabric->post({}, {&post, 1}), 1u);
  EXPECT_EQ(::poll(&wait, 1, 5000), 1);
  EXPECT_EQ(b.fabric->poll({}, 10, sink), 1u);
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
}

}  // namespace
}  // namespace weft
