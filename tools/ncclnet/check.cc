// SPDX-License-Identifier: Apache-2.0
// The graph of a run, and its verdict in one line; see check.h.
#include "tools/ncclnet/check.h"

#include <cstdio>

#include <fmt/format.h>

#include "tools/common/exit_codes.h"
#include "tools/ncclnet/trace_rules.h"

namespace weft::ncclnet {

int run_check(const Options& options) {
  Trace trace;
  std::string why = load_trace(options.directory, trace);
  if (why.empty() && trace.ending != Ending::kWhole) {
    why = trace.name + ": this run ends in the middle: there is no order to check";
  }
  if (!why.empty()) {
    fmt::print("FAIL {}\n", why);
    return tools::kUsage;
  }
  size_t lines = 0, count = 0;
  std::vector<RankNeeds> needs;
  for (const RankTrace& rank : trace.ranks) {
    needs.push_back(options.rules == "relaxed" ? relaxed_needs(rank) : strict_needs(rank));
    lines += rank.lines.size();
    for (const auto& list : needs.back()) count += list.size();
  }
  const std::string cycle = find_cycle(trace, needs);
  if (!cycle.empty()) {
    fmt::print("FAIL {}: {} order hangs: {}\n", trace.name, options.rules, cycle);
    return tools::kDataWrong;
  }
  fmt::print("PASS check rules={} ranks={} lines={} needs={} trace={}\n", options.rules,
             trace.ranks.size(), lines, count, trace.name);
  return tools::kGood;
}

}  // namespace weft::ncclnet
