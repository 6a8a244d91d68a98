// SPDX-License-Identifier: Apache-2.0
//
// weft_ncclnet: drives any NCCL network plugin as NCCL does. This file decides which role the
// process has: the parent, or (the hidden `rank` subcommand, started by the parent only) one rank.
#include <fcntl.h>

#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tools/common/numbers.h"
#include "tools/ncclnet/allreduce.h"
#include "tools/ncclnet/check.h"
#include "tools/ncclnet/latency.h"
#include "tools/ncclnet/launcher.h"
#include "tools/ncclnet/rank.h"
#include "tools/ncclnet/stream.h"
#include "tools/ncclnet/trace.h"

namespace weft::ncclnet {
namespace {

// argv: weft_ncclnet rank <index> <count> <what the user typed...>
int rank_main(int argc, char** argv) {
  constexpr int kOwn = 3;
  const auto index = argc > kOwn ? tools::parse_integer<uint32_t>(argv[2]) : std::nullopt;
  const auto count = argc > kOwn ? tools::parse_integer<uint32_t>(argv[3]) : std::nullopt;
  if (!index || !count || *index >= *count || ::fcntl(kBoardFd, F_GETFD) < 0) {
    fmt::print(stderr, "weft_ncclnet: `rank` is for the program itself; see --help\n");
    return tools::kUsage;
  }
  for (const int fd : {kChannelFd, kBoardFd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  std::vector<const char*> words = {argv[0]};
  words.insert(words.end(), argv + kOwn + 1, argv + argc);
  int exit_code = tools::kUsage;
  const auto options = parse_options(static_cast<int>(words.size()), words.data(), exit_code);
  if (!options) return exit_code;
  return run_rank(*options, *index, *count);
}

// Fills in the plan of a replay. Returns what is wrong with the trace.
std::string plan_replay(const Options& options, Trace& trace, Plan& plan) {
  const std::string why = load_trace(options.directory, trace);
  if (!why.empty()) return why;
  if (trace.ending != Ending::kWhole && options.rules != "strict") {
    return trace.name + ": this run ends in the middle; it can be replayed in strict order only";
  }
  plan.ranks = static_cast<uint32_t>(trace.ranks.size());
  plan.total_bytes = trace.bytes;
  for (uint32_t i = 0; i < plan.ranks; ++i) plan.killed.push_back(is_killed(trace, i));
  plan.describe_line = [&trace](uint32_t rank, uint32_t thread, uint32_t number) {
    const RankTrace& of = trace.ranks[rank];
    std::string text =
        fmt::format("thread {} line {}",
                    thread < of.thread_numbers.size() ? of.thread_numbers[thread] : thread, number);
    for (const TraceLine& line : of.lines) {
      if (line.number != number) continue;
      text += fmt::format(" `{}`", line.text);
      if (line.call != Call::kTest) break;
      const RequestInfo& request = of.requests[static_cast<size_t>(line.request)];
      const TraceLine& post = of.lines[static_cast<size_t>(request.post_line)];
      text += fmt::format(" (posted at line {} `{}`)", post.number, post.text);
      break;
    }
    return text;
  };
  return {};
}

int parent_main(int argc, char** argv) {
  int exit_code = tools::kUsage;
  const auto options = parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  if (options->mode == Mode::kCheck) return run_check(*options);
  Plan plan;
  Trace trace;
  // Before the run, not after it.
  std::string why = options->json.empty() ? "" : tools::why_not_writable(options->json);
  if (!why.empty()) {
    fmt::print("FAIL --json: {}\n", why);
    return tools::kUsage;
  }
  switch (options->mode) {
    case Mode::kReplay: why = plan_replay(*options, trace, plan); break;
    case Mode::kCheck: break;  // above
    case Mode::kAllreduce: plan_allreduce(*options, plan); break;
    case Mode::kStream: plan_stream(*options, plan); break;
    case Mode::kLatency: plan_latency(*options, plan); break;
  }
  if (!why.empty()) {
    fmt::print("FAIL {}\n", why);
    return tools::kUsage;
  }
  tools::Report report = launch(*options, std::vector<std::string>(argv + 1, argv + argc), plan);
  if (options->mode == Mode::kReplay) report.extra.emplace_back("trace", trace.name);
  if (!options->json.empty() && !report.write_json(options->json, why)) {
    fmt::print(stderr, "weft_ncclnet: {}\n", why);
    if (report.code == tools::kGood) {
      report.code = tools::kUsage;
      report.why = why;
    }
  }
  fmt::print("{}\n", report.last_line());
  return report.code;
}

}  // namespace
}  // namespace weft::ncclnet

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "rank") return weft::ncclnet::rank_main(argc, argv);
  return weft::ncclnet::parent_main(argc, argv);
}
