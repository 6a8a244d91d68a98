// SPDX-License-Identifier: Apache-2.0
// Two UDP fabrics on loopback that are linked, a sink that counts, and a peer that is plain
// sockets.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "tests/unit/udp/sockets.h"
#include "transport/udp/udp.h"
#include "transport/udp/udp_address.h"

namespace weft {

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

}  // namespace weft
