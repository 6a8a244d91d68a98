// SPDX-License-Identifier: Apache-2.0
//
// The parent: starts the ranks, passes their handles on, shows progress, and makes one report of
// what came of it. It loads no plugin and has one thread, so nothing that a plugin does can stop
// it from noticing a crash or a hang and from ending every rank.
//
// When a rank fails, the others get a moment to say what they saw; then all are killed. The cause
// that is reported is the most telling one: wrong data, then a crash, then who failed first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/common/report.h"
#include "tools/ncclnet/options.h"

namespace weft::ncclnet {

struct Plan {
  uint32_t ranks = 0;
  uint64_t total_bytes = 0;  // for the progress display; 0: not known
  // By rank: kills itself at the first barrier, and is at no later one. Empty: none does.
  std::vector<bool> killed;
  // What line `line` of thread slot `thread` of a rank is, for messages; may be empty.
  std::function<std::string(uint32_t rank, uint32_t thread, uint32_t line)> describe_line;
  // Changes the report of a run that went well, before it is printed. May be empty.
  std::function<void(tools::Report& report)> finish;
  // All ranks met; `value` is the largest that any gave. May be empty.
  std::function<void(uint32_t barrier, uint64_t value)> at_barrier;
};

/// Runs the ranks. `words` is the command line that each of them parses again.
tools::Report launch(const Options& options, const std::vector<std::string>& words,
                     const Plan& plan);

}  // namespace weft::ncclnet
