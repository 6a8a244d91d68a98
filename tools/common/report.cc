// SPDX-License-Identifier: Apache-2.0
// The last line, the JSON file and the plugin's statistics; see report.h.
#include "tools/common/report.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::tools {
namespace {

using nlohmann::json;

std::string or_dash(bool known, uint64_t value) {
  return known ? fmt::format("{}", value) : std::string("-");
}

json or_null(bool known, uint64_t value) { return known ? json(value) : json(nullptr); }

// The payload rate of all ranks together.
double goodput_bps(const Report& report) {
  return report.seconds > 0 ? static_cast<double>(report.bytes) * 8 / report.seconds : 0;
}

uint64_t number(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

void add_number(const json& object, const char* key, std::optional<uint64_t>& sum) {
  const auto it = object.find(key);
  if (it != object.end() && it->is_number_unsigned()) sum = sum.value_or(0) + it->get<uint64_t>();
}

}  // namespace

std::string PluginFigures::add(const std::string& lines) {
  std::istringstream in(lines);
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty()) continue;
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object()) {
      return fmt::format("the plugin's WEFT_STATS line is no JSON object: {:.80}", line);
    }
    any = true;
    add_number(object, "retransmitted", retransmitted);
    add_number(object, "lost", lost);
    uint64_t used = 0;
    const auto list = object.find("paths");
    if (list == object.end() || !list->is_array()) continue;
    for (const json& path : *list) {
      if (!path.is_object() || !path.contains("id") || !path["id"].is_number_integer()) continue;
      const uint64_t bytes = number(path, "bytes");
      PathFigures& sum = paths[path["id"].get<int64_t>()];
      sum.bytes += bytes;
      sum.retransmitted += number(path, "retransmitted");
      used += bytes > 0 ? 1 : 0;
    }
    paths_used = std::max(paths_used, used);
  }
  return {};
}

std::string Report::last_line() const {
  if (code != kGood) return "FAIL " + why;
  std::string line = fmt::format(
      "PASS {} api={} ranks={} bytes={} paths={} retransmitted={} lost={} seconds={:.3f} "
      "goodput_bps={:.0f}",
      what, api, ranks, bytes, or_dash(plugin.any, plugin.paths_used),
      or_dash(plugin.retransmitted.has_value(), plugin.retransmitted.value_or(0)),
      or_dash(plugin.lost.has_value(), plugin.lost.value_or(0)), seconds, goodput_bps(*this));
  for (const auto& [key, value] : extra) line += fmt::format(" {}={}", key, value);
  return line;
}

std::string why_not_writable(const std::string& path) {
  struct stat about {};
  int error = 0;
  if (::stat(path.c_str(), &about) == 0) {
    error = S_ISDIR(about.st_mode) ? EISDIR : ::access(path.c_str(), W_OK) == 0 ? 0 : errno;
  } else if (errno == ENOENT) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    error = ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  } else {
    error = errno;
  }
  return error == 0 ? "" : fmt::format("cannot write {}: {}", path, std::strerror(error));
}

bool Report::write_json(const std::string& path, std::string& why_not) const {
  json list = json::array();
  for (const auto& [id, figures] : plugin.paths) {
    list.push_back(
        {{"id", id}, {"bytes", figures.bytes}, {"retransmitted", figures.retransmitted}});
  }
  json object = {
      {"what", what},
      {"result", code == kGood ? "PASS" : "FAIL"},
      {"exit", static_cast<int>(code)},
      {"why", code == kGood ? json(nullptr) : json(why)},
      {"api", api == "-" ? json(nullptr) : json(api)},
      {"ranks", ranks},
      {"bytes", bytes},
      {"retransmitted",
       or_null(plugin.retransmitted.has_value(), plugin.retransmitted.value_or(0))},
      {"lost", or_null(plugin.lost.has_value(), plugin.lost.value_or(0))},
      {"seconds", seconds},
      {"goodput_bps", goodput_bps(*this)},
      {"paths", plugin.any ? list : json(nullptr)},
  };
  for (const auto& [key, value] : extra) {
    const json parsed = json::parse(value, nullptr, false);
    object[key] = parsed.is_number() ? parsed : json(value);
  }
  std::ofstream out(path);
  out << object.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  out.flush();
  if (out) return true;
  why_not = fmt::format("cannot write {}: {}", path, std::strerror(errno));
  return false;
}

}  // namespace weft::tools
