// SPDX-License-Identifier: Apache-2.0
// An IPv4 or IPv6 address as a value.
//
// One type for both, so that what is above the sockets asks for an address and not for a family.
// The scope is this host's own business: it says on which interface a link-local IPv6 address is
// meant, never crosses the network, and is 0 for every other address. Pure; nothing fails.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

namespace weft {

struct IpAddress {
  bool ipv6 = false;
  std::array<uint8_t, 16> bytes{};  // network order; IPv4 in the first four, the rest 0
  uint32_t scope = 0;               // index of an interface

  static IpAddress v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) { return {false, {a, b, c, d}}; }
  static IpAddress v6_loopback() {
    IpAddress out{true, {}};
    out.bytes[15] = 1;
    return out;
  }

  size_t size() const { return ipv6 ? 16 : 4; }
  std::span<const uint8_t> octets() const { return std::span(bytes).first(size()); }

  bool loopback() const { return ipv6 ? *this == v6_loopback() : bytes[0] == 127; }
  // Reaches the neighbours on one link and nobody else.
  bool link_local() const {
    return ipv6 ? bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80
                : bytes[0] == 169 && bytes[1] == 254;
  }
  // One host's address, not "any", a group or everybody. An IPv4 address in IPv6 clothing is none:
  // the two families would be mixed without anybody's knowing.
  bool unicast() const {
    if (!ipv6)
      return bytes[0] != 0 && bytes[0] < 224;  // 224 and above: groups, reserved, broadcast
    const bool ten_zeros =
        std::all_of(bytes.begin(), bytes.begin() + 10, [](uint8_t b) { return b == 0; });
    const bool any =
        ten_zeros && std::all_of(bytes.begin() + 10, bytes.end(), [](uint8_t b) { return b == 0; });
    const bool mapped = ten_zeros && bytes[10] == 0xff && bytes[11] == 0xff;
    return bytes[0] != 0xff && !any && !mapped;
  }
  const char* family() const { return ipv6 ? "IPv6" : "IPv4"; }

  // "10.0.0.1", "2001:db8::1", "fe80::1%3".
  std::string text() const {
    char out[kTextBytes];
    write(out);
    return out;
  }
  // "10.0.0.1:80", "[2001:db8::1]:80".
  std::string text(uint16_t port) const {
    char address[kTextBytes];
    write(address);
    char out[kTextBytes + 16];
    std::snprintf(out, sizeof out, ipv6 ? "[%s]:%u" : "%s:%u", address, unsigned{port});
    return out;
  }

  bool operator==(const IpAddress&) const = default;

 private:
  static constexpr size_t kTextBytes = INET6_ADDRSTRLEN + 16;
  void write(char (&out)[kTextBytes]) const {
    if (!inet_ntop(ipv6 ? AF_INET6 : AF_INET, bytes.data(), out, sizeof out)) out[0] = '\0';
    const size_t length = std::strlen(out);
    if (scope != 0) std::snprintf(out + length, sizeof out - length, "%%%u", scope);
  }
};

}  // namespace weft
