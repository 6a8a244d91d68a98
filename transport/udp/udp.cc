// SPDX-License-Identifier: Apache-2.0
// Checks a UdpConfig and opens the fabric on it.
#include "transport/udp/udp.h"

#include <algorithm>

#include "transport/udp/udp_address.h"
#include "transport/udp/udp_fabric.h"

namespace weft {
namespace {

Status invalid(std::string words) { return Status(Code::kInvalidArgument, std::move(words)); }

Status check(const UdpConfig& config) {
  const bool ipv6 = config.address.ipv6;
  if (!config.address.unicast()) {
    return invalid("UDP needs one address of this host, not " + config.address.text());
  }
  if (config.sockets < 1 || config.sockets > kMaxPaths) {
    return invalid("UDP was asked for " + std::to_string(config.sockets) + " sockets; 1 to " +
                   std::to_string(kMaxPaths) + " are possible");
  }
  if (config.mtu < min_udp_mtu(ipv6)) {
    return invalid("the interface of " + config.address.text() + " has an MTU of " +
                   std::to_string(config.mtu) + "; at least " + std::to_string(min_udp_mtu(ipv6)) +
                   " is needed");
  }
  const uint32_t room =
      std::min(config.mtu - udp_overhead(ipv6), kMaxUdpPayload) - kMaxSegmentHeader;
  const uint32_t wanted = config.segment_bytes_override;
  if (wanted % kLineBytes != 0 || wanted > room) {
    return invalid("segments of " + std::to_string(wanted) + " bytes: a multiple of " +
                   std::to_string(kLineBytes) + " up to " + std::to_string(room) +
                   " fits an MTU of " + std::to_string(config.mtu));
  }
  return Status();
}

}  // namespace

uint32_t segment_for_mtu(uint32_t mtu, bool ipv6) {
  const uint32_t datagram = std::min(mtu - udp_overhead(ipv6), kMaxUdpPayload);
  const uint32_t payload = datagram - static_cast<uint32_t>(kMaxSegmentHeader);
  return std::min(payload / kLineBytes * kLineBytes, kMaxUdpSegment);
}

Result<std::unique_ptr<Fabric>> open_udp(const UdpConfig& asked, Memory& memory) {
  UdpConfig config = asked;
  if (config.mtu == 0) config.mtu = 1500;
  if (Status bad = check(config); !bad) return bad;
  if (config.segment_bytes_override == 0)
    config.segment_bytes_override = segment_for_mtu(config.mtu, config.address.ipv6);
  Result<udp::SocketSet> sockets = udp::SocketSet::open(config);
  if (!sockets) return sockets.status();
  return std::unique_ptr<Fabric>(
      std::make_unique<udp::UdpFabric>(config, std::move(*sockets), memory));
}

UdpCounters udp_counters(const Fabric& fabric) {
  const auto* ours = dynamic_cast<const udp::UdpFabric*>(&fabric);
  return ours ? ours->counters() : UdpCounters{};
}

}  // namespace weft
