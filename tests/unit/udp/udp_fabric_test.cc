// SPDX-License-Identifier: Apache-2.0
// What is particular to the UDP fabric; what every fabric must do is in tests/fabric.
#include <gtest/gtest.h>
#include <poll.h>

#include <map>

#include "tests/unit/udp/sockets.h"
#include "transport/udp/udp.h"
#include "transport/udp/udp_address.h"

namespace weft {
namespace {

using udp::testing::Bytes;

// Counts arrivals by their first byte.
class CountingSink : public FabricSink {
 public:
  std::map<uint8_t, size_t> seen;
  size_t marked = 0;
  void receive(std::span<Datagram> batch) override {
    for (const Datagram& d : batch) {
      ++seen[d.size ? static_cast<uint8_t>(d.bytes[0]) : 0];
      marked += d.congestion_marked;
    }
  }
  void arrived(std::span<const Datagram>) override {}
  void landed(std::span<const Landing>) override { ADD_FAILURE(); }
  void completed(std::span<const Completion>) override { ADD_FAILURE(); }
  void path_changed(std::span<const PathChange>) override { ADD_FAILURE(); }
};

struct End {
  End(HostMemory& memory, int sockets, UdpFeature gro,
      const IpAddress& address_of_host = IpAddress::v4(127, 0, 0, 1)) {
    UdpConfig config;
    config.address = address_of_host;
    config.sockets = sockets;
    config.gro = gro;
    fabric = std::move(*open_udp(config, memory));
    link = *fabric->create_link(&address);
  }
  std::unique_ptr<Fabric> fabric;
  LinkAddress address;
  LinkId link = 0;
};

class UdpFabricTest : public ::testing::Test {
 protected:
  explicit UdpFabricTest(UdpFeature gro = UdpFeature::kAuto)
      : a(memory, 3, gro), b(memory, 5, gro) {
    EXPECT_TRUE(a.fabric->connect_link(a.link, b.address));
    EXPECT_TRUE(b.fabric->connect_link(b.link, a.address));
  }
  SegmentPost segment(PathIndex path, uint8_t mark) {
    SegmentPost post;
    post.link = a.link;
    post.path = path;
    post.header_bytes = 64;
    post.header.fill(static_cast<std::byte>(mark));
    return post;
  }
  HostMemory memory;
  End a, b;
  CountingSink sink;
};

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

// Ports that a link of `end` is connected to, with nobody but the test behind them.
struct PlainPeer {
  PlainPeer(End& end, int count) {
    udp::UdpAddress plain{udp::decode_address(end.address)->address, {}};
    for (int i = 0; i < count; ++i) {
      SocketAddress name;
      ports.push_back(udp::testing::udp_socket(&name, plain.address));
      plain.ports.push_back(name.port());
    }
    LinkAddress ours;
    link = *end.fabric->create_link(&ours);
    EXPECT_TRUE(end.fabric->connect_link(link, encode_address(plain)));
  }
  std::vector<FileDescriptor> ports;
  LinkId link = 0;
};

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

TEST_F(UdpFabricTest, APeerOfTheOtherFamilyIsRefusedInWords) {
  LinkAddress address;
  const LinkId link = *a.fabric->create_link(&address);
  const auto other = encode_address(udp::UdpAddress{IpAddress::v6_loopback(), {9}});
  const Status status = a.fabric->connect_link(link, other);
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_NE(status.words().find("WEFT_FAMILY"), std::string::npos) << status.words();
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
