// SPDX-License-Identifier: Apache-2.0
// The table of settings, and how a value is read from text and refused.
#include "transport/system/config.h"

#include <charconv>
#include <optional>
#include <utility>

#include "transport/system/config_builder.h"
#include "transport/system/phrase.h"

namespace weft {
namespace {

constexpr double kNone = 0;
constexpr std::size_t kMaxValueBytes = 4096;

// The table. Everything about a setting stands in its row; the README's list is made from it.
constexpr std::array<SettingInfo, kSettingCount> kSettings = {{
    {Setting::kFabric, "WEFT_FABRIC", Kind::kChoice, "auto", kNone, kNone, 1, "auto|udp",
     "how packets reach the network; auto takes the best that this machine has"},
    {Setting::kIfname, "WEFT_IFNAME", Kind::kText, "", kNone, kNone, 1, "",
     "network interfaces: a comma list of prefixes, =exact names, ^to exclude; when not set, what "
     "NCCL_SOCKET_IFNAME says, else the first that is up"},
    {Setting::kPaths, "WEFT_PATHS", Kind::kWhole, "32", 1, 256, 1, "",
     "how many paths a connection spreads its packets over"},
    {Setting::kSelector, "WEFT_SELECTOR", Kind::kChoice, "reps", kNone, kNone, 1,
     "reps|oblivious|single", "which path the next burst takes"},
    {Setting::kCongestion, "WEFT_CC", Kind::kChoice, "nscc", kNone, kNone, 1, "nscc|fixed",
     "congestion control"},
    {Setting::kProgress, "WEFT_PROGRESS", Kind::kChoice, "auto", kNone, kNone, 1,
     "auto|caller|thread", "who drives the protocol: the thread that tests requests, or our own"},
    {Setting::kPeerTimeout, "WEFT_PEER_TIMEOUT_MS", Kind::kWhole, "10000", 100, 600000, 1, "",
     "milliseconds of silence on all paths after which a peer counts as dead"},
    {Setting::kLinkGbps, "WEFT_LINK_GBPS", Kind::kDecimal, "0", 0, 100000, 1, "",
     "speed of a port in Gbit/s, for ports that report none or a wrong one; 0: what it reports"},
    {Setting::kLog, "WEFT_LOG", Kind::kChoice, "warn", kNone, kNone, 1, "error|warn|info|trace",
     "what is written to the log: this and what is more urgent"},
    {Setting::kStats, "WEFT_STATS", Kind::kText, "", kNone, kNone, 1, "",
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
    {Setting::kFamily, "WEFT_FAMILY", Kind::kChoice, "auto", kNone, kNone, 1, "auto|ipv4|ipv6",
     "addresses of which kind; auto: IPv4 where the interface has one; when not set, what "
     "NCCL_SOCKET_FAMILY says"},
}};

constexpr bool table_is_in_order() {
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    if (static_cast<std::size_t>(kSettings[i].setting) != i) return false;
  }
  return true;
}
static_assert(table_is_in_order());

constexpr std::size_t position(std::string_view choices, std::string_view wanted) {
  for (std::size_t index = 0; !choices.empty(); ++index) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == wanted) return index;
    choices.remove_prefix(bar == std::string_view::npos ? choices.size() : bar + 1);
  }
  return std::string_view::npos;
}

// The enums that Config's accessors cast to follow the order of the choices.
constexpr const char* choices_of(Setting s) {
  return kSettings[static_cast<std::size_t>(s)].choices;
}
static_assert(position(choices_of(Setting::kFabric), "udp") ==
              static_cast<std::size_t>(FabricChoice::kUdp));
static_assert(position(choices_of(Setting::kUdpGso), "off") ==
              static_cast<std::size_t>(Switch::kOff));
static_assert(position(choices_of(Setting::kUdpGro), "off") ==
              static_cast<std::size_t>(Switch::kOff));
static_assert(position(choices_of(Setting::kFamily), "ipv6") ==
              static_cast<std::size_t>(FamilyChoice::kIpv6));
static_assert(position(choices_of(Setting::kProgress), "thread") ==
              static_cast<std::size_t>(ProgressMode::kThread));
static_assert(position(choices_of(Setting::kLog), "trace") ==
              static_cast<std::size_t>(Level::kTrace));

// The whole of `text` as a number, or nothing.
template <class Number>
std::optional<Number> to_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool in_range(const SettingInfo& info, double number) {
  return number >= info.min && number <= info.max;  // false for a NaN
}

const SettingInfo* find_setting(std::string_view name) {
  for (const SettingInfo& info : kSettings) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

std::string known_names() {
  std::string names;
  for (const SettingInfo& info : kSettings) names += phrase(" {}", info.name);
  return names;
}

}  // namespace

std::span<const SettingInfo, kSettingCount> all_settings() { return kSettings; }

std::string SettingInfo::allowed() const {
  switch (kind) {
    case Kind::kText: return phrase("any text of at most {} bytes", kMaxValueBytes);
    case Kind::kChoice: {
      std::string words;
      for (const char c : std::string_view(choices)) words += c == '|' ? ", " : std::string(1, c);
      return words.find(',') == std::string::npos ? words : "one of " + words;
    }
    case Kind::kDecimal: return phrase("a number from {} to {}", min, max);
    case Kind::kWhole: break;
  }
  std::string words = phrase("a whole number from {:.0f} to {:.0f}", min, max);
  if (multiple > 1) words += phrase(", a multiple of {}", multiple);
  return words;
}

void ConfigBuilder::offer(std::string_view name, std::string_view value, Origin origin,
                          std::string where) {
  const SettingInfo* info = find_setting(name);
  if (info == nullptr) {
    const bool ours = name.substr(0, 5) == "WEFT_" && name.substr(0, 10) != "WEFT_TEST_";
    if (ours || origin != Origin::kEnvironment) {
      warn(phrase("{} (from {}) is not a setting of Weft and does nothing; there are:{}", name,
                  where, known_names()));
    }
    return;
  }
  if (value.empty()) return;
  Config::Value& slot = config_.values_[static_cast<std::size_t>(info->setting)];
  slot.text = value;
  slot.origin = origin;
  slot.where = std::move(where);
}

std::string ConfigBuilder::parse(const SettingInfo& info, Config::Value& value) {
  const std::string_view text = value.text;
  switch (info.kind) {
    case Kind::kText:
      if (text.size() > kMaxValueBytes) return "is too long";
      return "";
    case Kind::kChoice: {
      const std::size_t index = position(info.choices, text);
      if (index == std::string_view::npos) return "is not known";
      value.whole = static_cast<int64_t>(index);
      return "";
    }
    case Kind::kDecimal: {
      const std::optional<double> number = to_number<double>(text);
      if (!number) return "is not a number";
      if (!in_range(info, *number)) return "is out of range";
      value.decimal = *number;
      return "";
    }
    case Kind::kWhole: break;
  }
  const std::optional<int64_t> number = to_number<int64_t>(text);
  if (!number) return "is not a whole number";
  if (!in_range(info, static_cast<double>(*number))) return "is out of range";
  if (*number % info.multiple != 0) return phrase("is no multiple of {}", info.multiple);
  value.whole = *number;
  return "";
}

Result<Config> ConfigBuilder::finish() {
  for (const SettingInfo& info : kSettings) {
    Config::Value& value = config_.values_[static_cast<std::size_t>(info.setting)];
    if (value.origin == Origin::kDefault) {
      value.text = info.fallback;
      value.where = "the default";
    }
    if (const std::string wrong = parse(info, value); !wrong.empty()) {
      errors_.push_back(phrase("{}={} (from {}) {}: allowed is {} ({})", info.name,
                               std::string_view(value.text).substr(0, 64), value.where, wrong,
                               info.allowed(), info.help));
    }
  }
  if (!errors_.empty()) {
    std::string all;
    for (const std::string& error : errors_) all += (all.empty() ? "" : "; ") + error;
    return Status(Code::kInvalidArgument, std::move(all));
  }
  return std::move(config_);
}

}  // namespace weft
