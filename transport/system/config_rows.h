// SPDX-License-Identifier: Apache-2.0
//
// The table of settings as a person reads it: a row of words a setting, values and origins
// included. How rows are laid out is for whoever prints them. The text is safe for a terminal:
// control characters are replaced; it may still hold bytes that are no UTF-8, as names of files
// may.
// Threading: any. Nothing fails but memory.
#pragma once

#include <string>
#include <vector>

#include "transport/system/config.h"

namespace weft {

struct SettingRow {
  std::string name;
  std::string value;     // in force
  std::string fallback;  // the default
  std::string range;     // what is allowed
  std::string origin;    // "the default", "the environment", "/etc/weft.conf:3"
  std::string help;
  bool set = false;  // by some source, if only to its default
};

// In the table's order.
std::vector<SettingRow> setting_rows(const Config& config);

}  // namespace weft
