// SPDX-License-Identifier: Apache-2.0
// Plain kernel UDP over IPv4 or IPv6 as a fabric: what a caller needs to open one and to look into
// it.
//
// An endpoint has N sockets, each bound to a port of its own, shared by all its links. Routers and
// switches choose a way by the four-tuple, so a pair of ports is a path: path i of a link goes from
// local socket i mod N to remote port i mod M, and a link has max(N, M) paths. The NIC places
// nothing, repairs nothing and keeps no order, so these offloads are false and the connection does
// the rest; congestion marks it may show.
//
// What the kernel can do in one go it is let do: trains of datagrams are handed over whole on the
// way out (GSO) and on the way in (GRO), each where the kernel has it.
//
// Threading: as the contract in fabric.h says. Ownership: the fabric owns its sockets, its epoll
// descriptor and its receive arena; the Memory must outlive it. What may fail: opening (an address
// that is not ours, no descriptors left, a setting without sense), in words; after that only
// datagrams get lost.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/base/ip_address.h"
#include "transport/base/result.h"
#include "transport/fabric.h"
#include "transport/memory.h"

namespace weft {

enum class UdpFeature : uint8_t {
  kAuto,  // where the kernel has it
  kOn,    // or opening fails
  kOff,
};

struct UdpConfig {
  IpAddress address{};      // of this host; one address, not "any"
  int sockets = 32;         // 1 to kMaxPaths
  uint32_t mtu = 0;         // of the interface, bytes of an IP packet; 0: not known, taken as 1500
  uint32_t speed_mbps = 0;  // of the interface; 0: not known
  uint32_t segment_bytes_override = 0;  // 0: the largest that fits the MTU, up to kMaxUdpSegment
  // Of each socket: kernel memory that is used only under a backlog. 0: the system's default.
  uint32_t receive_buffer_bytes = 2u << 20;
  uint32_t send_buffer_bytes = 1u << 20;
  UdpFeature gso = UdpFeature::kAuto;  // sending in trains
  UdpFeature gro = UdpFeature::kAuto;  // receiving in trains
  bool ecn = true;  // let routers mark instead of dropping, where that can be seen
};

// IP and UDP headers.
constexpr uint32_t udp_overhead(bool ipv6) { return ipv6 ? 48 : 28; }
// No datagram is longer, whatever the MTU.
inline constexpr uint32_t kMaxUdpPayload = 65507;
// Below this MTU a control packet would not fit a datagram.
constexpr uint32_t min_udp_mtu(bool ipv6) { return kMaxControlBytes + udp_overhead(ipv6); }
// Every link that carries IPv6 carries 1280 bytes.
static_assert(min_udp_mtu(true) <= 1280);
// No larger segment is chosen by itself. On loopback (MTU 65536) each step up to here moves more
// bytes a second, and no step past it; yet a default receive buffer still holds several.
inline constexpr uint32_t kMaxUdpSegment = 57344;

// Largest segment whose datagram fits the MTU unfragmented, in whole lines, at most kMaxUdpSegment.
// Precondition: mtu >= min_udp_mtu(ipv6).
uint32_t segment_for_mtu(uint32_t mtu, bool ipv6);

// What a fabric has seen since it was opened. Datagrams, unless bytes are named.
struct UdpCounters {
  uint64_t sent = 0;
  uint64_t sent_bytes = 0;
  uint64_t send_calls = 0;
  uint64_t received = 0;
  uint64_t received_bytes = 0;
  uint64_t receive_calls = 0;
  uint64_t trains = 0;           // GSO sends; their datagrams count in `sent` one by one
  uint64_t received_trains = 0;  // likewise GRO's
  uint64_t refused = 0;          // times that the kernel had no room, so that a post took a prefix
  uint64_t too_big = 0;          // refused for their size: taken, and lost
  uint64_t send_errors = 0;      // refused for another reason, twice: taken, and lost
  uint64_t misposted = 0;        // on no link or path, or longer than a segment: taken, and lost
  uint64_t truncated = 0;        // arrived longer than any datagram of ours can be; dropped
  uint64_t receive_errors = 0;
  // dropped by the kernel on arrival, mostly for want of buffer; a train counts once
  uint64_t kernel_drops = 0;
  uint32_t receive_buffer_bytes = 0;  // what the kernel granted a socket, as it counts
};

Result<std::unique_ptr<Fabric>> open_udp(const UdpConfig& config, Memory& memory);

// All zero for a fabric that is not a UDP fabric. Called by whoever calls the data path; it costs a
// syscall a socket.
UdpCounters udp_counters(const Fabric& fabric);

}  // namespace weft
