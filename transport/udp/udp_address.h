// SPDX-License-Identifier: Apache-2.0
// The link address of a UDP fabric: where an endpoint's sockets can be reached.
//
//    0  u8   version   1
//    1  u8   family    4
//    2  u16  count of ports, 1 to kMaxPaths, little-endian
//    4  u8   x 4       IPv4 address, network order
//    8  u16  x count   ports, little-endian
//
// It comes from a peer, so decoding takes it as hostile: exact length, no address that names nobody
// or many, no port 0. What is wrong is said in words. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/base/result.h"
#include "transport/fabric.h"

namespace weft::udp {

struct UdpAddress {
  std::array<uint8_t, 4> address{};
  std::vector<uint16_t> ports;  // host order

  bool loopback() const { return address[0] == 127; }
};

LinkAddress encode_address(const UdpAddress& address);
Result<UdpAddress> decode_address(std::span<const std::byte> bytes);

// "10.0.0.1".
std::string text_of(const std::array<uint8_t, 4>& address);

// One host's address, not "any", a group or everybody.
bool is_unicast(const std::array<uint8_t, 4>& address);

}  // namespace weft::udp
