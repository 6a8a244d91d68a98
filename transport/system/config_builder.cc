// SPDX-License-Identifier: Apache-2.0
// How a value is read from text, and refused; see config_builder.h.
#include "transport/system/config_builder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "transport/system/nearest.h"
#include "transport/system/phrase.h"

namespace weft {
namespace {

constexpr std::size_t kMaxErrors = 8;
constexpr std::size_t kMaxWarnings = 32;
constexpr std::size_t kShownBytes = 64;  // of a value, name or line

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

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

const SettingInfo* find_setting(std::string_view name) {
  for (const SettingInfo& info : all_settings()) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

// What to say to somebody who wrote a name that is none of ours.
std::string instead_of(std::string_view name) {
  std::vector<std::string_view> names;
  std::string all = "there are:";
  for (const SettingInfo& info : all_settings()) {
    if (*info.nccl != '\0' && name == info.nccl) return phrase("here its name is {}", info.name);
    names.emplace_back(info.name);
    all += phrase(" {}", info.name);
  }
  const std::string_view near = nearest(name, names, "WEFT_");
  return near.empty() ? all : phrase("did you mean {}?", near);
}

std::string refusal_of_choice(const SettingInfo& info, std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view rest = info.choices; !rest.empty();) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    words.push_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  const std::string_view near = nearest(text, words);
  return near.empty() ? "is not known" : phrase("is not known (did you mean {}?)", near);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kShownBytes));
  std::replace_if(shown.begin(), shown.end(), is_control, '?');
  return text.size() > kShownBytes ? shown + "..." : shown;
}

void ConfigBuilder::refuse(std::string words) {
  if (errors_.size() < kMaxErrors) {
    errors_.push_back(std::move(words));
  } else {
    ++more_errors_;
  }
}

void ConfigBuilder::warn(std::string words) {
  if (config_.warnings_.size() < kMaxWarnings) {
    config_.warnings_.push_back(std::move(words));
  } else {
    ++more_warnings_;
  }
}

void ConfigBuilder::offer(std::string_view name, std::string_view value, Origin origin,
                          std::string where) {
  const SettingInfo* info = find_setting(name);
  if (info == nullptr) {
    const bool ours = name.substr(0, 5) == "WEFT_" && name.substr(0, 10) != "WEFT_TEST_";
    if (ours || origin != Origin::kEnvironment) {
      warn(phrase("{} (from {}) is not a setting of this Weft and does nothing; {}",
                  printable(name), where, instead_of(name)));
    }
    return;
  }
  if (value.empty()) return;
  Config::Value& slot = config_.values_[static_cast<std::size_t>(info->setting)];
  const bool again = slot.origin == origin;
  if (again && origin == Origin::kEnvironment) {
    warn(phrase("{} stands in {} more than once; the first counts", name, where));
    return;
  }
  if (again && origin != Origin::kNccl) {
    warn(
        phrase("{} (from {}) was set by {} already; the last one counts", name, where, slot.where));
  }
  slot.text = value;
  slot.origin = origin;
  slot.where = std::move(where);
}

std::string ConfigBuilder::parse(const SettingInfo& info, Config::Value& value) {
  const std::string_view text = value.text;
  if (std::any_of(text.begin(), text.end(), is_control)) return "holds control characters";
  switch (info.kind) {
    case Kind::kText:
      if (text.size() > kMaxValueBytes) return "is too long";
      return "";
    case Kind::kChoice: {
      const std::size_t index = choice_position(info.choices, text);
      if (index == std::string_view::npos) return refusal_of_choice(info, text);
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
  for (const SettingInfo& info : all_settings()) {
    Config::Value& value = config_.values_[static_cast<std::size_t>(info.setting)];
    if (value.origin == Origin::kDefault) {
      value.text = info.fallback;
      value.where = "the default";
    }
    if (const std::string wrong = parse(info, value); !wrong.empty()) {
      refuse(phrase("{}={} (from {}) {}: allowed is {} ({})", info.name, printable(value.text),
                    value.where, wrong, info.allowed(), info.help));
    }
  }
  if (!errors_.empty()) {
    std::string all;
    for (const std::string& error : errors_) all += (all.empty() ? "" : "; ") + error;
    if (more_errors_ > 0) all += phrase("; and {} more", more_errors_);
    return Status(Code::kInvalidArgument, std::move(all));
  }
  if (more_warnings_ > 0) {
    config_.warnings_.push_back(phrase("and {} warnings more about settings", more_warnings_));
  }
  return std::move(config_);
}

}  // namespace weft
