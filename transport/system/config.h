// SPDX-License-Identifier: Apache-2.0
//
// What a user can set: one table of WEFT_* variables, and the values in force in this process.
//
// Sources, the first that names a variable wins: the environment, ~/.weft.conf, /etc/weft.conf,
// what NCCL was told (a column of the table), the table's default. Files hold NAME=VALUE lines and
// # comments; an empty value counts as not set.
// Invariant: a Config only ever holds values that its table allows, and each knows where it came
// from. So nobody else in Weft reads the environment, and nobody checks a range twice.
// A value that is in force and not allowed is refused, and so is a line that is none; all such in
// one Status whose words give name, value, source and what is allowed. A bad value that a better
// source overrides does no harm. Images are shared between versions, so an unknown WEFT_* name is a
// warning, with the name that may have been meant (WEFT_TEST_* belongs to tests and is let be).
// Threading: a Config is immutable; load_config() reads `environ`, so it must not race with a
// setenv in another thread. What may fail: as said; a file that exists and cannot be read is a
// warning.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/system/interfaces.h"
#include "transport/system/log.h"

namespace weft {

// The order of the table in config.cc.
enum class Setting : uint8_t {
  kFabric,
  kIfname,
  kFamily,
  kPaths,
  kSelector,
  kCongestion,
  kProgress,
  kPeerTimeout,
  kLinkGbps,
  kLog,
  kStats,
  kWindow,
  kSegment,
  kUdpGso,
  kUdpGro,
};
inline constexpr std::size_t kSettingCount = 15;

inline constexpr std::size_t kMaxValueBytes = 4096;

enum class Kind : uint8_t { kText, kWhole, kDecimal, kChoice };

struct SettingInfo {
  Setting setting;
  const char* name;
  Kind kind;
  const char* fallback;  // the default, as a user would write it
  double min;            // numbers only
  double max;
  int64_t multiple;     // whole numbers only: the value must be a multiple of this
  const char* choices;  // kChoice: "a|b|c"; kText: what is expected, in words
  const char* help;
  const char* nccl = "";  // the variable of NCCL's that counts when nobody names this one

  std::string range() const;    // "1 to 256", "auto, udp"
  std::string allowed() const;  // in a sentence: "a whole number from 1 to 256"
};

std::span<const SettingInfo, kSettingCount> all_settings();

// Where `wanted` stands among "a|b|c"; npos: nowhere.
constexpr std::size_t choice_position(std::string_view choices, std::string_view wanted) {
  for (std::size_t index = 0; !choices.empty(); ++index) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == wanted) return index;
    choices.remove_prefix(bar == std::string_view::npos ? choices.size() : bar + 1);
  }
  return std::string_view::npos;
}

// From the weakest to the strongest.
enum class Origin : uint8_t { kDefault, kNccl, kSystemFile, kUserFile, kEnvironment };

enum class FabricChoice : uint8_t { kAuto, kUdp };
enum class Switch : uint8_t { kAuto, kOn, kOff };
enum class ProgressMode : uint8_t { kAuto, kCaller, kThread };

class Config {
 public:
  FabricChoice fabric() const { return static_cast<FabricChoice>(choice(Setting::kFabric)); }
  const std::string& ifname() const { return text(Setting::kIfname); }
  uint32_t paths() const { return static_cast<uint32_t>(whole(Setting::kPaths)); }
  const std::string& selector() const { return text(Setting::kSelector); }
  const std::string& congestion() const { return text(Setting::kCongestion); }
  ProgressMode progress() const { return static_cast<ProgressMode>(choice(Setting::kProgress)); }
  Duration peer_timeout() const { return milliseconds(whole(Setting::kPeerTimeout)); }
  double link_gbps() const { return value(Setting::kLinkGbps).decimal; }  // 0: what the port says
  Level log_level() const { return static_cast<Level>(choice(Setting::kLog)); }
  const std::string& stats_path() const { return text(Setting::kStats); }  // empty: none
  uint64_t window_bytes() const { return static_cast<uint64_t>(whole(Setting::kWindow)) * 1024; }
  uint32_t segment_bytes() const { return static_cast<uint32_t>(whole(Setting::kSegment)); }
  FamilyChoice family() const { return static_cast<FamilyChoice>(choice(Setting::kFamily)); }
  Switch udp_gso() const { return static_cast<Switch>(choice(Setting::kUdpGso)); }
  Switch udp_gro() const { return static_cast<Switch>(choice(Setting::kUdpGro)); }

  // As a user would write it.
  const std::string& text(Setting setting) const { return value(setting).text; }
  Origin origin(Setting setting) const { return value(setting).origin; }
  // "the default", "the environment", "/etc/weft.conf:3".
  const std::string& where(Setting setting) const { return value(setting).where; }
  // What is odd but does not stop us, one line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  friend class ConfigBuilder;

  struct Value {
    std::string text;
    int64_t whole = 0;     // kWhole: the number; kChoice: the position in `choices`
    double decimal = 0.0;  // kDecimal
    Origin origin = Origin::kDefault;
    std::string where;
  };

  const Value& value(Setting setting) const { return values_[static_cast<std::size_t>(setting)]; }
  int64_t whole(Setting setting) const { return value(setting).whole; }
  int64_t choice(Setting setting) const { return value(setting).whole; }

  std::array<Value, kSettingCount> values_;
  std::vector<std::string> warnings_;
};

// Where read_config looks, so that tests need neither environment nor home.
struct ConfigSources {
  std::vector<std::string> environment;  // NAME=VALUE, as in environ
  std::string user_file;                 // empty: none
  std::string system_file;               // empty: none
  std::vector<std::string> remarks;      // what is odd about the places themselves: warnings
};

// For the same sources the same answer.
Result<Config> read_config(const ConfigSources& sources);

// The usual places, for a process with this environment (null: empty). $HOME says where ~ is, and
// has to be absolute. `privileged`: the process has rights that its caller lacks; then
// /etc/weft.conf is all, since the environment, $HOME with it, is what the caller made it.
ConfigSources usual_sources(char** environment, bool privileged);
// Those of this process: `environ`, and AT_SECURE as in secure_getenv(3).
ConfigSources usual_sources();

Result<Config> load_config();  // read_config(usual_sources())

// Sets the log level; then writes to the log the warnings and, at level info, every setting that
// some source names, with its origin.
void apply_log_settings(const Config& config);

}  // namespace weft
