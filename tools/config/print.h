// SPDX-License-Identifier: Apache-2.0
//
// The rows of settings laid out: for a terminal, as JSON, and as the table in the README.
//
// Threading: any. Nothing fails but memory. Bytes that are no UTF-8 become U+FFFD in JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "transport/system/config_rows.h"

namespace weft::tools {

// One line a setting, its meaning on the next.
std::string settings_as_text(std::span<const SettingRow> rows);

// {"settings":[{"name":...,"value":...,"default":...,"allowed":...,"from":...,"set":...,
// "help":...},...],"warnings":[...]}
std::string settings_as_json(std::span<const SettingRow> rows,
                             const std::vector<std::string>& warnings);
// {"error":...}
std::string refusal_as_json(const std::string& words);

// Defaults only: what is true of every machine.
std::string settings_as_markdown(std::span<const SettingRow> rows);

}  // namespace weft::tools
