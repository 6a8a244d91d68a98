// SPDX-License-Identifier: Apache-2.0
// Three layouts of one table; see print.h.
#include "tools/config/print.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::tools {
namespace {

using nlohmann::json;

constexpr size_t kWidestColumn = 36;  // what is wider pushes the rest of its line
constexpr size_t kTextWidth = 96;
constexpr std::string_view kIndent = "    ";

constexpr std::string_view kTitles[] = {"NAME", "VALUE", "DEFAULT", "FROM", "ALLOWED"};

// A value that is empty must not look like a missing column.
std::string_view or_dash(std::string_view text) { return text.empty() ? "-" : text; }

std::vector<std::string_view> columns(const SettingRow& row) {
  return {row.name, or_dash(row.value), or_dash(row.fallback), row.origin, row.range};
}

std::string wrapped(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    size_t end = text.size();
    if (end > kTextWidth) {
      end = text.rfind(' ', kTextWidth);
      if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
    }
    lines += fmt::format("{}{}\n", kIndent, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Names of variables as code; they are what begins with one of these.
std::string with_code(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.substr(0, 5) != "WEFT_" && text.substr(0, 5) != "NCCL_") {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const size_t end =
        std::min(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"), text.size());
    out += fmt::format("`{}`", text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

std::string dump(const json& object) {
  return object.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string settings_as_text(std::span<const SettingRow> rows) {
  std::vector<size_t> widths;
  for (const std::string_view title : kTitles) widths.push_back(title.size());
  for (const SettingRow& row : rows) {
    const std::vector<std::string_view> cells = columns(row);
    for (size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], std::min(cells[i].size(), kWidestColumn));
    }
  }
  const auto line = [&](std::span<const std::string_view> cells) {
    std::string text;
    for (size_t i = 0; i + 1 < cells.size(); ++i) {
      text += fmt::format("{:<{}}  ", cells[i], widths[i]);
    }
    return text + fmt::format("{}\n", cells.back());
  };
  std::string text = line(kTitles);
  for (const SettingRow& row : rows) text += line(columns(row)) + wrapped(row.help);
  return text;
}

std::string settings_as_json(std::span<const SettingRow> rows,
                             const std::vector<std::string>& warnings) {
  json list = json::array();
  for (const SettingRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"value", row.value},
                    {"default", row.fallback},
                    {"allowed", row.range},
                    {"from", row.origin},
                    {"set", row.set},
                    {"help", row.help}});
  }
  return dump({{"settings", list}, {"warnings", warnings}});
}

std::string refusal_as_json(const std::string& words) { return dump({{"error", words}}); }

std::string settings_as_markdown(std::span<const SettingRow> rows) {
  std::string text =
      "| Name | Default | Allowed | Meaning |\n"
      "|---|---|---|---|\n";
  for (const SettingRow& row : rows) {
    text +=
        fmt::format("| `{}` |{} | {} | {} |\n", row.name,
                    row.fallback.empty() ? "" : " " + row.fallback, row.range, with_code(row.help));
  }
  return text;
}

}  // namespace weft::tools
