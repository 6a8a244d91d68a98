// SPDX-License-Identifier: Apache-2.0
// What an IP header tells beside the datagram (ECN), over IPv4 and IPv6, and which addresses mix.
#include <gtest/gtest.h>

#include "tests/unit/udp/fabrics.h"

namespace weft {
namespace {

// The bits of ECN in what a socket gets; -1: it was not told.
int ecn_of_next(int socket) {
  std::byte room[2048];
  alignas(cmsghdr) std::byte aside[64];
  iovec piece{room, sizeof room};
  msghdr h{};
  h.msg_iov = &piece;
  h.msg_iovlen = 1;
  h.msg_control = aside;
  h.msg_controllen = sizeof aside;
  if (::recvmsg(socket, &h, MSG_DONTWAIT) < 0) return -1;
  for (cmsghdr* c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) return *CMSG_DATA(c) & 3;
    if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) return *CMSG_DATA(c) & 3;
  }
  return -1;
}

TEST_F(UdpFabricTest, SaysThatItsDatagramsMayBeMarked) {
  if (!a.fabric->offloads().ecn) GTEST_SKIP() << "this kernel shows no marks";
  PlainPeer peer(a, 1);
  const int one = 1;
  ASSERT_EQ(::setsockopt(peer.ports[0].get(), IPPROTO_IP, IP_RECVTOS, &one, sizeof one), 0);
  std::vector<SegmentPost> posts(4, segment(0, 1));
  for (SegmentPost& p : posts) p.link = peer.link;
  ASSERT_EQ(a.fabric->post({}, posts), posts.size());
  for (size_t i = 0; i < posts.size(); ++i) EXPECT_EQ(ecn_of_next(peer.ports[0].get()), 2);
}

TEST_F(UdpFabricTest, ShowsWhichDatagramsWereMarked) {
  if (!a.fabric->offloads().ecn) GTEST_SKIP() << "this kernel shows no marks";
  SocketAddress from;
  const FileDescriptor router = udp::testing::udp_socket(&from);
  const SocketAddress to(from.address(), udp::decode_address(b.address)->ports[0]);
  // 1 is ECT(1), 2 ECT(0), 3 a mark; the other six bits are not about congestion.
  for (int tos : {3, 0, 2, 1, 0xff, 0xfc}) {
    ASSERT_EQ(::setsockopt(router.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos), 0);
    udp::testing::send_to(router.get(), Bytes(100, std::byte{1}), to);
  }
  EXPECT_EQ(b.fabric->poll({}, 100, sink), 6u);
  EXPECT_EQ(sink.marked, 2u);
}

TEST_F(UdpFabricTest, AMarkedTrainIsMarkedThroughout) {
  SocketAddress from;
  const FileDescriptor router = udp::testing::udp_socket(&from);
  if (!a.fabric->offloads().ecn || !udp::testing::set_udp_option(router.get(), UDP_SEGMENT, 100)) {
    GTEST_SKIP() << "this kernel shows no marks or sends no trains";
  }
  const SocketAddress to(from.address(), udp::decode_address(b.address)->ports[0]);
  for (int tos : {3, 2}) {
    ASSERT_EQ(::setsockopt(router.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos), 0);
    udp::testing::send_to(router.get(), Bytes(950, std::byte{1}), to);
  }
  EXPECT_EQ(b.fabric->poll({}, 100, sink), 20u);
  EXPECT_EQ(sink.marked, 10u);
}

TEST(UdpEcn, IsNotAskedForWhereItIsNotWanted) {
  HostMemory memory;
  UdpConfig config;
  config.address = IpAddress::v4(127, 0, 0, 1);
  config.sockets = 2;
  config.ecn = false;
  const auto fabric = open_udp(config, memory);
  ASSERT_TRUE(fabric) << fabric.status().words();
  EXPECT_FALSE((*fabric)->offloads().ecn);
}

// What is particular to IPv6; the contract suite runs over it too.
class UdpIpv6Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!udp::testing::host_has_ipv6()) GTEST_SKIP() << "this host has no ::1";
    a = std::make_unique<End>(memory, 2, UdpFeature::kAuto, IpAddress::v6_loopback());
  }
  HostMemory memory;
  std::unique_ptr<End> a;
  CountingSink sink;
};

TEST_F(UdpIpv6Test, SaysThatItsDatagramsMayBeMarkedAndSeesMarks) {
  if (!a->fabric->offloads().ecn) GTEST_SKIP() << "this kernel shows no marks";
  PlainPeer peer(*a, 1);
  const int one = 1;
  ASSERT_EQ(::setsockopt(peer.ports[0].get(), IPPROTO_IPV6, IPV6_RECVTCLASS, &one, sizeof one), 0);
  SegmentPost post;
  post.link = peer.link;
  post.header_bytes = 64;
  ASSERT_EQ(a->fabric->post({}, {&post, 1}), 1u);
  EXPECT_EQ(ecn_of_next(peer.ports[0].get()), 2);
  const SocketAddress to(IpAddress::v6_loopback(), udp::decode_address(a->address)->ports[0]);
  for (int tclass : {3, 2, 0}) {
    ASSERT_EQ(::setsockopt(peer.ports[0].get(), IPPROTO_IPV6, IPV6_TCLASS, &tclass, sizeof tclass),
              0);
    udp::testing::send_to(peer.ports[0].get(), Bytes(100, std::byte{1}), to);
  }
  EXPECT_EQ(a->fabric->poll({}, 100, sink), 3u);
  EXPECT_EQ(sink.marked, 1u);
}

TEST_F(UdpIpv6Test, LinkLocalAndOtherAddressesDoNotMix) {
  LinkAddress address;
  const LinkId link = *a->fabric->create_link(&address);
  IpAddress neighbour = IpAddress::v6_loopback();
  neighbour.bytes[0] = 0xfe, neighbour.bytes[1] = 0x80;
  const Status status =
      a->fabric->connect_link(link, encode_address(udp::UdpAddress{neighbour, {9}}));
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_NE(status.words().find("fe80::1"), std::string::npos) << status.words();
}

}  // namespace
}  // namespace weft
