// SPDX-License-Identifier: Apache-2.0
// What the kernel says of interfaces, and the choice among them.
#include "transport/system/interfaces.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "transport/system/file_descriptor.h"

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

// Fills address and family; false for what is neither IPv4 nor IPv6.
bool read_address(const sockaddr* from, Interface& to) {
  if (from == nullptr) return false;
  if (from->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, from, sizeof in);
    std::memcpy(to.address.data(), &in.sin_addr, sizeof in.sin_addr);
    to.ipv4 = true;
    return true;
  }
  if (from->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, from, sizeof in);
    std::memcpy(to.address.data(), &in.sin6_addr, sizeof in.sin6_addr);
    return true;
  }
  return false;
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

std::vector<Interface> select_default(const std::vector<Interface>& all) {
  const Interface* loopback = nullptr;
  for (const Interface& each : all) {
    if (!each.ipv4 || !each.up) continue;
    if (!each.loopback && each.running && !made_by_a_manager(each)) return {each};
    if (each.loopback && loopback == nullptr) loopback = &each;
  }
  if (loopback != nullptr) return {*loopback};
  return {};
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

std::string Interface::address_text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (inet_ntop(ipv4 ? AF_INET : AF_INET6, address.data(), text, sizeof text) == nullptr)
    return "?";
  return text;
}

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
    if (entry->ifa_name == nullptr || !read_address(entry->ifa_addr, found)) continue;
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
                                                 std::string_view text) {
  const Rule rule = parse_rule(text);
  std::vector<Interface> chosen;
  std::vector<Interface> loopbacks;  // an exclusion leaves loopback in, but nobody means it first
  if (rule.names.empty()) {
    chosen = select_default(all);
  } else {
    for (const Interface& each : all) {
      if (!each.ipv4 || !each.up || rule.names_match(each.name) == rule.exclude) continue;
      (rule.exclude && each.loopback ? loopbacks : chosen).push_back(each);
    }
    if (chosen.empty()) chosen = std::move(loopbacks);
  }
  if (!chosen.empty()) return chosen;
  return Status(Code::kInvalidArgument, "no interface with an IPv4 address that is up " +
                                            (text.empty() ? std::string("was found")
                                                          : "matches '" + std::string(text) + "'") +
                                            "; there are: " + describe(all));
}

}  // namespace weft
