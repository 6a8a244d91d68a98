// SPDX-License-Identifier: Apache-2.0
// Which interfaces a rule picks: the first line is the rule, then an interface a line: flags (u up,
// r running, l loopback, 6 IPv6), four characters of address, a name.
#include <algorithm>
#include <set>

#include "tests/fuzz/fuzz.h"
#include "transport/system/interfaces.h"

namespace weft::fuzz {
namespace {

Interface interface_of(std::string_view line, uint32_t index) {
  Interface out;
  const std::string_view flags = take_until(&line, ' ');
  const std::string_view address = take_until(&line, ' ');
  out.up = flags.find('u') != std::string_view::npos;
  out.running = flags.find('r') != std::string_view::npos;
  out.loopback = flags.find('l') != std::string_view::npos;
  out.address.ipv6 = flags.find('6') != std::string_view::npos;
  for (size_t i = 0; i < std::min(address.size(), size_t{4}); ++i) {
    out.address.bytes[i] = static_cast<uint8_t>(address[i]);
  }
  out.name = std::string(line);
  out.index = index;
  return out;
}

void check(const std::vector<Interface>& all, std::string_view rule, FamilyChoice family) {
  const Result<std::vector<Interface>> chosen = select_interfaces(all, rule, family);
  if (!chosen.ok()) {
    promise(!chosen.status().words().empty(), "a refusal has words");
    return;
  }
  promise(!chosen->empty(), "something is picked, or the rule refused");
  if (rule.empty()) promise(chosen->size() == 1, "without a rule one is picked");
  std::set<uint32_t> seen;
  for (const Interface& each : *chosen) {
    promise(each.up && each.address.unicast(), "what is picked is up and has an address");
    promise(seen.insert(each.index).second, "each is picked once");
    promise(family == FamilyChoice::kAuto || each.address.ipv6 == (family == FamilyChoice::kIpv6),
            "the family is the one that was asked for");
  }
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  std::string_view text = text_of(input);
  const std::string_view rule = take_until(&text, '\n');
  std::vector<Interface> all;
  while (!text.empty() && all.size() < 64) {
    // Pairs share an index: one interface with two addresses.
    all.push_back(interface_of(take_until(&text, '\n'), static_cast<uint32_t>(1 + all.size() / 2)));
  }
  check(all, rule, FamilyChoice::kAuto);
  check(all, rule, FamilyChoice::kIpv4);
  check(all, rule, FamilyChoice::kIpv6);
  return select_interfaces(all, rule).ok();
}

}  // namespace weft::fuzz
