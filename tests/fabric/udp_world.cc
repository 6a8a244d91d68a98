// SPDX-License-Identifier: Apache-2.0
// Two UDP fabrics on loopback: as on Ethernet, with unequal numbers of sockets, with the segments
// that loopback's own MTU allows, and with the kernel's trains (GSO, GRO) left out on either side;
// over IPv4 and IPv6.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/fabric/world.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"
#include "transport/udp/udp.h"
#include "transport/udp/udp_address.h"

namespace weft::contract {
namespace {

class UdpWorld final : public World {
 public:
  struct Kind {
    IpAddress address = IpAddress::v4(127, 0, 0, 1);
    int sockets_here = 8;
    int sockets_there = 8;
    uint32_t mtu = 1500;
    UdpFeature gso = UdpFeature::kAuto;
    UdpFeature gro = UdpFeature::kAuto;
  };
  explicit UdpWorld(const Kind& kind)
      : fabrics_{open(kind.sockets_here, kind), open(kind.sockets_there, kind)} {}

  Fabric& fabric(int side) override { return *fabrics_[side == 0 ? 0 : 1]; }
  Time now() override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
  }
  void pass_time() override { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

  size_t throw_garbage(const LinkAddress& address, Random& random) override {
    const auto to = udp::decode_address(address);
    if (!to) throw std::runtime_error(to.status().words());
    FileDescriptor stranger(::socket(family_of(to->address), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    size_t thrown = 0;
    for (uint16_t port : to->ports) {
      const SocketAddress name(to->address, port);
      // Sizes: nothing, a byte, around a header, whole, and more than any datagram of the fabric
      // has.
      for (uint64_t size : {0, 1, 15, 63, 64, 65, 1472, 1473, 9000, 65507}) {
        std::vector<std::byte> bytes(size);
        for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
        // Nothing of it may look like the suite's own.
        if (!bytes.empty()) bytes[0] = std::byte{0xff};
        thrown += ::sendto(stranger.get(), bytes.data(), size, 0, name.get(), name.size()) >= 0;
      }
    }
    return thrown;
  }

 private:
  std::unique_ptr<Fabric> open(int sockets, const Kind& kind) {
    UdpConfig config;
    config.address = kind.address;
    config.sockets = sockets;
    config.mtu = kind.mtu;
    config.gso = kind.gso;
    config.gro = kind.gro;
    auto fabric = open_udp(config, memory_);
    if (!fabric) throw std::runtime_error(fabric.status().words());
    return std::move(*fabric);
  }

  HostMemory memory_;
  std::unique_ptr<Fabric> fabrics_[2];
};

std::unique_ptr<World> make(const UdpWorld::Kind& kind) { return std::make_unique<UdpWorld>(kind); }

}  // namespace

std::unique_ptr<World> make_udp(uint64_t) { return make({}); }
std::unique_ptr<World> make_udp_uneven(uint64_t) { return make({.sockets_here = 3}); }
std::unique_ptr<World> make_udp_large(uint64_t) {
  return make({.sockets_here = 4, .sockets_there = 4, .mtu = 65536});
}
std::unique_ptr<World> make_udp_ipv6(uint64_t) {
  return make({.address = IpAddress::v6_loopback()});
}
std::unique_ptr<World> make_udp_ipv6_plain(uint64_t) {
  return make(
      {.address = IpAddress::v6_loopback(), .gso = UdpFeature::kOff, .gro = UdpFeature::kOff});
}
std::unique_ptr<World> make_udp_no_gso(uint64_t) { return make({.gso = UdpFeature::kOff}); }
std::unique_ptr<World> make_udp_no_gro(uint64_t) { return make({.gro = UdpFeature::kOff}); }
std::unique_ptr<World> make_udp_plain(uint64_t) {
  return make({.gso = UdpFeature::kOff, .gro = UdpFeature::kOff});
}

}  // namespace weft::contract
