// SPDX-License-Identifier: Apache-2.0
// The link address of a UDP fabric: where an endpoint's sockets can be reached.
//
//    0  u8   version   1
//    1  u8   family    4 or 6
//    2  u16  count of ports, 1 to kMaxPaths, little-endian
//    4  u8   x 4 or 16 address, network order
//    8 or 20  u16  x count   ports, little-endian
//
// It comes from a peer, so decoding takes it as hostile: exact length, no address that names nobody
// or many, no port 0. What is wrong is said in words. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transport/base/ip_address.h"
#include "transport/base/result.h"
#include "transport/fabric.h"

namespace weft::udp {

struct UdpAddress {
  IpAddress address;
  std::vector<uint16_t> ports;  // host order
};

LinkAddress encode_address(const UdpAddress& address);
Result<UdpAddress> decode_address(std::span<const std::byte> bytes);

}  // namespace weft::udp
