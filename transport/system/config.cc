// SPDX-License-Identifier: Apache-2.0
// The table of settings. Everything about a setting stands in its row: what reads, refuses, prints
// and documents settings goes by it (`weft_config --markdown` is the table in the README).
#include "transport/system/config.h"

#include "transport/system/phrase.h"

namespace weft {
namespace {

constexpr double kNone = 0;

constexpr std::array<SettingInfo, kSettingCount> kSettings = {{
    {Setting::kFabric, "WEFT_FABRIC", Kind::kChoice, "auto", kNone, kNone, 1, "auto|udp",
     "how packets reach the network; auto takes the best that this machine has"},
    {Setting::kIfname, "WEFT_IFNAME", Kind::kText, "", kNone, kNone, 1,
     "a comma list of prefixes; `=` in front: exact names; `^`: all but these",
     "network interfaces; when not set, what NCCL_SOCKET_IFNAME says, else the first that is up, "
     "loopback only if there is no other",
     "NCCL_SOCKET_IFNAME"},
    {Setting::kFamily, "WEFT_FAMILY", Kind::kChoice, "auto", kNone, kNone, 1, "auto|ipv4|ipv6",
     "addresses of which kind; auto: IPv4 where the interface has one; when not set, what "
     "NCCL_SOCKET_FAMILY says (AF_INET or AF_INET6)",
     "NCCL_SOCKET_FAMILY"},
    {Setting::kPaths, "WEFT_PATHS", Kind::kWhole, "32", 1, 256, 1, "",
     "how many paths a connection spreads its packets over"},
    {Setting::kSelector, "WEFT_SELECTOR", Kind::kChoice, "reps", kNone, kNone, 1,
     "reps|mixed|bitmap|oblivious|p2c|plb|flowlet|single",
     "which path the next burst takes: reps prefers those that answer without a mark, bitmap "
     "passes over those that were marked, mixed does both, oblivious takes every one in turn, p2c "
     "of two the one that answers sooner; on one path stay plb until it is congested, flowlet "
     "until a pause, single until it dies"},
    {Setting::kCongestion, "WEFT_CC", Kind::kChoice, "nscc", kNone, kNone, 1,
     "nscc|mnscc|swift|timely|dctcp|cubic|fixed",
     "congestion control; mnscc is nscc on the median of the paths, swift and timely go by round "
     "trips, dctcp and cubic by marks; fixed keeps WEFT_WINDOW_KB under way whatever happens: it "
     "must fit into the network's buffers"},
    {Setting::kProgress, "WEFT_PROGRESS", Kind::kChoice, "auto", kNone, kNone, 1,
     "auto|caller|thread", "who drives the protocol: the thread that tests requests, or our own"},
    {Setting::kPeerTimeout, "WEFT_PEER_TIMEOUT_MS", Kind::kWhole, "10000", 100, 600000, 1, "",
     "milliseconds of silence on all paths after which a peer counts as dead"},
    {Setting::kLinkGbps, "WEFT_LINK_GBPS", Kind::kDecimal, "0", 0, 100000, 1, "",
     "speed of a port in Gbit/s, for ports that report none or a wrong one; 0: what it reports"},
    {Setting::kLog, "WEFT_LOG", Kind::kChoice, "warn", kNone, kNone, 1, "error|warn|info|trace",
     "what is written to the log: this and what is more urgent"},
    {Setting::kStats, "WEFT_STATS", Kind::kText, "", kNone, kNone, 1, "a path",
     "file to which each endpoint appends its counters as a line of JSON when it ends"},
    {Setting::kWindow, "WEFT_WINDOW_KB", Kind::kWhole, "2048", 64, 65536, 1, "",
     "KiB that a connection may have under way at once, at most"},
    {Setting::kSegment, "WEFT_SEGMENT", Kind::kWhole, "0", 0, 65280, 128, "",
     "bytes of payload in a packet; 0: the most that the way to the peer carries, found out by "
     "trying"},
    {Setting::kUdpGso, "WEFT_UDP_GSO", Kind::kChoice, "auto", kNone, kNone, 1, "auto|on|off",
     "UDP: packets handed to the kernel in trains; auto: where it can"},
    {Setting::kUdpGro, "WEFT_UDP_GRO", Kind::kChoice, "auto", kNone, kNone, 1, "auto|on|off",
     "UDP: packets taken from the kernel in trains; auto: where it can"},
}};

constexpr bool table_is_in_order() {
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    if (static_cast<std::size_t>(kSettings[i].setting) != i) return false;
  }
  return true;
}
static_assert(table_is_in_order());

// The enums that Config's accessors cast to follow the order of the choices.
constexpr bool matches(Setting setting, std::string_view word, auto enumerator) {
  const char* choices = kSettings[static_cast<std::size_t>(setting)].choices;
  return choice_position(choices, word) == static_cast<std::size_t>(enumerator);
}
static_assert(matches(Setting::kFabric, "udp", FabricChoice::kUdp));
static_assert(matches(Setting::kUdpGso, "off", Switch::kOff));
static_assert(matches(Setting::kUdpGro, "off", Switch::kOff));
static_assert(matches(Setting::kFamily, "ipv6", FamilyChoice::kIpv6));
static_assert(matches(Setting::kProgress, "thread", ProgressMode::kThread));
static_assert(matches(Setting::kLog, "trace", Level::kTrace));

}  // namespace

std::span<const SettingInfo, kSettingCount> all_settings() { return kSettings; }

std::string SettingInfo::range() const {
  switch (kind) {
    case Kind::kText: return choices;
    case Kind::kChoice: {
      std::string words;
      for (const char c : std::string_view(choices)) words += c == '|' ? ", " : std::string(1, c);
      return words;
    }
    case Kind::kDecimal:
    case Kind::kWhole: break;
  }
  std::string words = phrase("{:.0f} to {:.0f}", min, max);
  if (multiple > 1) words += phrase(", a multiple of {}", multiple);
  return words;
}

std::string SettingInfo::allowed() const {
  switch (kind) {
    case Kind::kText: return phrase("{}, in at most {} bytes", range(), kMaxValueBytes);
    case Kind::kChoice: return "one of " + range();
    case Kind::kDecimal: return "a number from " + range();
    case Kind::kWhole: break;
  }
  return "a whole number from " + range();
}

}  // namespace weft
