// SPDX-License-Identifier: Apache-2.0
// The link address of the UDP fabric: encoded, and decoded as bytes from a stranger.
#include "transport/udp/udp_address.h"

#include "transport/wire/cursor.h"

namespace weft::udp {
namespace {

constexpr uint8_t kAddressVersion = 1;
constexpr uint8_t kFamilyIpv4 = 4;
constexpr uint8_t kFamilyIpv6 = 6;
constexpr size_t kFixedBytes = 4;

Status refuse(const std::string& why) {
  return Status(Code::kRemote, "the peer's UDP address makes no sense: " + why);
}

}  // namespace

LinkAddress encode_address(const UdpAddress& address) {
  LinkAddress out(kFixedBytes + address.address.size() + 2 * address.ports.size());
  wire::Writer w(out);
  w.put<uint8_t>(kAddressVersion);
  w.put<uint8_t>(address.address.ipv6 ? kFamilyIpv6 : kFamilyIpv4);
  w.put<uint16_t>(static_cast<uint16_t>(address.ports.size()));
  for (uint8_t part : address.address.octets()) w.put<uint8_t>(part);
  for (uint16_t port : address.ports) w.put<uint16_t>(port);
  return out;
}

Result<UdpAddress> decode_address(std::span<const std::byte> bytes) {
  wire::Reader r(bytes);
  const auto version = r.get<uint8_t>();
  const auto family = r.get<uint8_t>();
  const auto count = r.get<uint16_t>();
  UdpAddress out;
  if (r.failed()) return refuse("it has " + std::to_string(bytes.size()) + " bytes, too few");
  if (version != kAddressVersion) {
    return refuse("its version is " + std::to_string(version) + " where this side knows 1; " +
                  "is the peer a UDP fabric of the same release?");
  }
  if (family != kFamilyIpv4 && family != kFamilyIpv6)
    return refuse("its family is " + std::to_string(family) + ", neither IPv4 nor IPv6");
  out.address.ipv6 = family == kFamilyIpv6;
  for (size_t i = 0; i < out.address.size(); ++i) out.address.bytes[i] = r.get<uint8_t>();
  if (r.failed()) return refuse("it has " + std::to_string(bytes.size()) + " bytes, too few");
  if (count == 0 || count > kMaxPaths) {
    return refuse("it counts " + std::to_string(count) + " ports where 1 to " +
                  std::to_string(kMaxPaths) + " are possible");
  }
  if (r.left() != size_t{2} * count) {
    return refuse("it counts " + std::to_string(count) + " ports but carries " +
                  std::to_string(r.left()) + " bytes of them");
  }
  if (!out.address.unicast()) return refuse(out.address.text() + " is not one host's address");
  out.ports.resize(count);
  for (uint16_t& port : out.ports) {
    port = r.get<uint16_t>();
    if (port == 0) return refuse("port 0 is among its ports");
  }
  return out;
}

}  // namespace weft::udp
