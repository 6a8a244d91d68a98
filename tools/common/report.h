// SPDX-License-Identifier: Apache-2.0
//
// The result of a run, as people, scripts and programs read it: the last line of standard output
// (`PASS <what> key=value ...` or `FAIL <why>`) and the JSON file with the same keys. A figure that
// the plugin did not give is `-`, in JSON null; nothing is ever guessed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/common/exit_codes.h"

namespace weft::tools {

struct PathFigures {
  uint64_t bytes = 0;
  uint64_t retransmitted = 0;
};

/// What endpoints say of themselves at their end, in the file that WEFT_STATS names: a line of
/// JSON each, {"paths":[{"id":,"bytes":,"packets":,"retransmitted":}],"retransmitted":,"lost":}.
struct PluginFigures {
  std::map<int64_t, PathFigures> paths;  // summed over the endpoints, by path id
  uint64_t paths_used = 0;               // the most paths that carried bytes at one endpoint
  std::optional<uint64_t> retransmitted;
  std::optional<uint64_t> lost;
  bool any = false;  // some endpoint wrote a line

  /// Adds the lines of one process. Returns what is wrong with them, empty when nothing is.
  std::string add(const std::string& lines);
};

/// What stands in the way of writing a file of that name, empty when nothing seems to.
/// Creates nothing.
std::string why_not_writable(const std::string& path);

struct Report {
  std::string what;  // "replay", "allreduce", "stream"
  ExitCode code = kGood;
  std::string why;  // when code is not kGood: the first cause, one line
  std::string api = "-";
  uint64_t ranks = 0;
  uint64_t bytes = 0;  // payload received and verified, all ranks together
  PluginFigures plugin;
  double seconds = 0;  // from the first data call to the last completion
  std::vector<std::pair<std::string, std::string>> extra;  // further keys, at the end

  std::string last_line() const;
  /// False, with `why_not` set, when the file cannot be written.
  bool write_json(const std::string& path, std::string& why_not) const;
};

}  // namespace weft::tools
