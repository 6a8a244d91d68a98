// SPDX-License-Identifier: Apache-2.0
// What the kernel says of interfaces, and the choice among them.
#include "transport/system/interfaces.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"

namespace weft {
namespace {

constexpr int64_t kMaxSaneSpeedMbps = 10'000'000;

// Interfaces that containers and virtual machines are attached to; traffic between hosts that left
// through one of these would be a surprise. They can still be named.
constexpr std::string_view kManagedPrefixes[] = {"docker", "br-", "veth", "virbr"};

// A number from a one-line file under /sys/class/net/NAME/, where the kernel gives one.
std::optional<int64_t> read_sysfs(const std::string& interface, const char* what) {
  const std::string path = "/sys/class/net/" + interface + "/" + what;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  char text[32];
  const ssize_t length = ::read(file.get(), text, sizeof text);  // fails for a link that is down
  int64_t value = 0;
  if (length <= 0 || std::from_chars(text, text + length, value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

uint32_t read_speed(const std::string& interface, uint32_t index) {
  // /sys shows the network namespace in which it was mounted: an interface of the same name there
  // may not be the one that we see.
  if (read_sysfs(interface, "ifindex").value_or(-1) != static_cast<int64_t>(index)) return 0;
  const int64_t speed = read_sysfs(interface, "speed").value_or(0);
  return speed > 0 && speed <= kMaxSaneSpeedMbps ? static_cast<uint32_t>(speed) : 0;
}

uint32_t read_mtu(int socket, const std::string& interface) {
  ifreq request{};
  if (socket < 0 || interface.size() >= sizeof request.ifr_name) return 0;
  std::memcpy(request.ifr_name, interface.c_str(), interface.size() + 1);
  if (::ioctl(socket, SIOCGIFMTU, &request) != 0 || request.ifr_mtu < 0) return 0;
  return static_cast<uint32_t>(request.ifr_mtu);
}

// False for what is neither IPv4 nor IPv6.
bool read_address(const sockaddr* from, IpAddress& to) {
  if (from == nullptr) return false;
  if (from->sa_family != AF_INET && from->sa_family != AF_INET6) return false;
  SocketAddress copy;
  std::memcpy(copy.out(), from,
              from->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  to = copy.address();
  return true;
}

struct Rule {
  bool exclude = false;
  bool exact = false;
  std::vector<std::string_view> names;

  bool names_match(std::string_view name) const {
    return std::any_of(names.begin(), names.end(), [&](std::string_view wanted) {
      return exact ? name == wanted : name.substr(0, wanted.size()) == wanted;
    });
  }
};

Rule parse_rule(std::string_view text) {
  Rule rule;
  if (!text.empty() && text.front() == '^') rule.exclude = true, text.remove_prefix(1);
  if (!text.empty() && text.front() == '=') rule.exact = true, text.remove_prefix(1);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    if (!name.empty()) rule.names.push_back(name);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return rule;
}

bool made_by_a_manager(const Interface& interface) {
  return std::any_of(
      std::begin(kManagedPrefixes), std::end(kManagedPrefixes),
      [&](std::string_view p) { return interface.name.compare(0, p.size(), p) == 0; });
}

bool allowed(const IpAddress& address, FamilyChoice family) {
  return family == FamilyChoice::kAuto || address.ipv6 == (family == FamilyChoice::kIpv6);
}

// The smaller, the rather it is taken.
int reluctance(const IpAddress& address) {
  return address.link_local() ? 2 + address.ipv6 : int{address.ipv6};
}
bool only_neighbours(const Interface& interface) { return interface.address.link_local(); }

// Every interface that is up and that the rule allows, once, with the best of its addresses, in the
// order of `all`.
std::vector<Interface> one_address_each(const std::vector<Interface>& all, const Rule& rule,
                                        FamilyChoice family) {
  std::vector<Interface> out;
  for (const Interface& each : all) {
    if (!each.up || !each.address.unicast() || !allowed(each.address, family)) continue;
    if (!rule.names.empty() && rule.names_match(each.name) == rule.exclude) continue;
    const auto same = std::find_if(out.begin(), out.end(), [&](const Interface& o) {
      return each.index != 0 ? o.index == each.index : o.name == each.name;  // aliases share one
    });
    if (same == out.end()) {
      out.push_back(each);
    } else if (reluctance(each.address) < reluctance(same->address)) {
      *same = each;
    }
  }
  return out;
}

std::vector<Interface> select_default(const std::vector<Interface>& all) {
  const Interface* loopback = nullptr;
  const Interface* neighbours = nullptr;
  for (const Interface& each : all) {
    const bool real = !each.loopback && each.running && !made_by_a_manager(each);
    if (real && !only_neighbours(each)) return {each};
    if (each.loopback && loopback == nullptr) loopback = &each;
    if (real && neighbours == nullptr) neighbours = &each;
  }
  if (loopback != nullptr) return {*loopback};
  if (neighbours != nullptr) return {*neighbours};
  return {};
}

std::vector<Interface> select_by_rule(const std::vector<Interface>& all, const Rule& rule) {
  std::vector<Interface> chosen;
  std::vector<Interface> loopbacks;  // an exclusion leaves loopback in, but nobody means it first
  std::vector<Interface> neighbours;
  for (const Interface& each : all) {
    if (rule.exclude && each.loopback) {
      loopbacks.push_back(each);
    } else {
      (only_neighbours(each) ? neighbours : chosen).push_back(each);
    }
  }
  if (!chosen.empty()) return chosen;
  return !loopbacks.empty() ? loopbacks : neighbours;
}

std::string describe(const std::vector<Interface>& all) {
  std::string words;
  for (const Interface& each : all) {
    if (!words.empty()) words += ", ";
    words += each.name + " (" + each.address_text() + (each.up ? ")" : ", down)");
  }
  return words.empty() ? "none at all" : words;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* head = nullptr;
  if (getifaddrs(&head) != 0) {
    return Status(Code::kSystem,
                  std::string("cannot list network interfaces: ") + strerrordesc_np(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(head, &freeifaddrs);
  const FileDescriptor query(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));

  std::vector<Interface> all;
  for (const ifaddrs* entry = head; entry != nullptr; entry = entry->ifa_next) {
    Interface found;
    if (entry->ifa_name == nullptr || !read_address(entry->ifa_addr, found.address)) continue;
    found.name = entry->ifa_name;
    // An alias (eth0:1) has no device of its own.
    const std::string device = found.name.substr(0, found.name.find(':'));
    found.index = if_nametoindex(device.c_str());
    found.up = (entry->ifa_flags & IFF_UP) != 0;
    found.running = (entry->ifa_flags & IFF_RUNNING) != 0;
    found.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    found.mtu = read_mtu(query.get(), device);
    found.speed_mbps = read_speed(device, found.index);
    all.push_back(std::move(found));
  }
  return all;
}

Result<std::vector<Interface>> select_interfaces(const std::vector<Interface>& all,
                                                 std::string_view text, FamilyChoice family) {
  const Rule rule = parse_rule(text);
  if (rule.names.empty() && !text.empty() && !rule.exclude) {
    return Status(Code::kInvalidArgument,
                  "'" + std::string(text) + "' names no interface; there are: " + describe(all));
  }
  const std::vector<Interface> usable = one_address_each(all, rule, family);
  std::vector<Interface> chosen =
      rule.names.empty() ? select_default(usable) : select_by_rule(usable, rule);
  if (!chosen.empty()) return chosen;
  const char* wanted = family == FamilyChoice::kAuto   ? "an"
                       : family == FamilyChoice::kIpv4 ? "an IPv4"
                                                       : "an IPv6";
  return Status(
      Code::kInvalidArgument,
      std::string("no interface with ") + wanted + " address that is up " +
          (text.empty() ? std::string("was found") : "matches '" + std::string(text) + "'") +
          "; there are: " + describe(all));
}

}  // namespace weft
