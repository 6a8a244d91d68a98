// SPDX-License-Identifier: Apache-2.0
// Rows of words; see config_rows.h.
#include "transport/system/config_rows.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

// Values hold none, but the path of a file may.
std::string without_controls(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

}  // namespace

std::vector<SettingRow> setting_rows(const Config& config) {
  std::vector<SettingRow> rows;
  rows.reserve(kSettingCount);
  for (const SettingInfo& info : all_settings()) {
    SettingRow row;
    row.name = info.name;
    row.value = config.text(info.setting);
    row.fallback = info.fallback;
    row.range = info.range();
    row.origin = without_controls(config.where(info.setting));
    row.help = info.help;
    row.set = config.origin(info.setting) != Origin::kDefault;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace weft
