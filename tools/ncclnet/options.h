// SPDX-License-Identifier: Apache-2.0
// What the user asked for. Parsed once by the parent, and again, from the same words, by each rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::ncclnet {

enum class Mode { kReplay, kCheck, kAllreduce, kStream, kLatency };

struct Options {
  Mode mode = Mode::kReplay;

  // All modes.
  std::string plugin;                   // path of the shared object
  std::string api = "max";              // "max" or a version
  std::vector<std::string> namespaces;  // ranks alternate between them
  double timeout_s = 60;
  std::string json;
  bool quiet = false;
  bool verbose = false;

  // replay and check
  std::string directory;
  std::string rules = "strict";
  // replay
  std::string after_dereg = "poison";
  double death_within_s = 20;

  // allreduce, stream and latency. Of latency, iterations and seconds are 0 where there is no such
  // limit.
  uint32_t ranks = 2;
  std::vector<uint64_t> bytes;
  uint32_t iterations = 20;
  uint32_t channels = 2;
  bool check_all = true;  // stream: every byte; else a line of every 8 KiB
  uint32_t inflight = 8;
  uint64_t slot_bytes = 1 << 20;
  double seconds = 5;
  uint32_t parts = 1;

  std::string mode_name() const;
};

/// Parses the command line. When there is nothing more to do (help, or an error that has been
/// reported) the exit code of the program is in `exit_code`.
std::optional<Options> parse_options(int argc, const char* const* argv, int& exit_code);

}  // namespace weft::ncclnet
