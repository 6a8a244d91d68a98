// SPDX-License-Identifier: Apache-2.0
//
// The machine's network interfaces as the kernel lists them, and the rule that picks from them.
//
// The rule has NCCL's syntax (NCCL_SOCKET_IFNAME): a comma list of name prefixes; `=` in front
// makes them exact names, `^` excludes what they match, `^=` excludes exact names. No rule: the
// first interface that is up, running, and neither loopback nor made by a container or VM manager;
// loopback where there is no other, so that a laptop works too.
//
// Of an interface with several addresses one is taken: of the family that was asked for, else IPv4
// before IPv6. A link-local address reaches only the neighbours on one link, so one is taken only
// from an interface that has no other, and only where nothing better is left.
//
// Invariant: what is selected is up, each interface once, with an address of an allowed family.
// Threading: any; plain values out. Ownership: none. What may fail: the kernel refuses the list
// (kSystem); a rule names nothing, or matches nothing that is up (kInvalidArgument, the words list
// what there is).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/ip_address.h"
#include "transport/base/result.h"

namespace weft {

// One address of one interface; an interface with several addresses appears several times.
struct Interface {
  std::string name;
  uint32_t index = 0;  // as in if_nametoindex
  IpAddress address;
  uint32_t mtu = 0;  // bytes of an IP packet; 0 where the kernel does not say
  bool up = false;
  bool running = false;  // has a carrier
  bool loopback = false;
  uint32_t speed_mbps = 0;  // 0: unknown (loopback, many virtual links)

  std::string address_text() const { return address.text(); }
};

enum class FamilyChoice : uint8_t { kAuto, kIpv4, kIpv6 };

// In the kernel's order.
Result<std::vector<Interface>> list_interfaces();

// Those of `all` that `rule` picks, in the order of `all`; never empty. With an empty rule exactly
// one; else every match, loopback only where it is named or nothing else is left.
Result<std::vector<Interface>> select_interfaces(const std::vector<Interface>& all,
                                                 std::string_view rule,
                                                 FamilyChoice family = FamilyChoice::kAuto);

}  // namespace weft
