// SPDX-License-Identifier: Apache-2.0
// What replay and check may be told; see replay_options.h.
#include "tools/ncclnet/replay_options.h"

#include <string>
#include <vector>

#include "tools/ncclnet/option_checks.h"

namespace weft::ncclnet {
namespace {

constexpr const char* kReplayRules =
    "strict: each thread's lines in their order, for what was recorded on a clear-to-send plugin.\n"
    "relaxed: as freely as the data allow, for what was recorded on a plugin that took every send\n"
    "  at once: in strict order such a run hangs where a send starts only when its receive is "
    "posted.\n"
    "Which traces are which: tests/traces/README.md, or weft_ncclnet check.\n"
    "\n"
    "A run that ends in the middle is replayed to its end. Where a rank was killed, it is killed\n"
    "here, and calls of its peers must return ncclRemoteError within --death-within. Where ranks\n"
    "aborted, requests stay open; memory goes right after deregMr, before the close.";

constexpr const char* kCheckRules =
    "Exit codes: 0 the order can be kept, even by a plugin that starts a send only when its "
    "receive\n"
    "is posted and connects only to who accepts; 1 it cannot: there is a cycle, whose lines are "
    "said;\n"
    "2 the trace is damaged, or ends in the middle. The rules: tests/traces/README.md.";

void add_trace(CLI::App& app, Options& o, const std::vector<std::string>& rules) {
  app.add_option("directory", o.directory, "Folder with rank<k>.trace files")
      ->required()
      ->type_name("DIR");
  std::string names;
  for (const std::string& rule : rules) names += (names.empty() ? "" : "|") + rule;
  app.add_option("--rules", o.rules, "How the recorded order is kept; see below")
      ->type_name(names)
      ->capture_default_str()
      ->check(CLI::IsMember(rules));
}

}  // namespace

CLI::App* add_replay(CLI::App& app, Options& options) {
  CLI::App* replay =
      app.add_subcommand("replay", "Replay a recorded run of NCCL, every byte checked");
  add_trace(*replay, options, {"strict", "relaxed"});
  replay
      ->add_option("--after-dereg", options.after_dereg,
                   "What becomes of memory right after its deregMr; any later write fails the run")
      ->type_name("keep|poison|unmap")
      ->capture_default_str()
      ->check(CLI::IsMember({"keep", "poison", "unmap"}).description(""));
  replay
      ->add_option("--death-within", options.death_within_s,
                   "How soon the peers of a killed rank must be told, in seconds")
      ->type_name("S")
      ->capture_default_str()
      ->check(decimal_within(0.1, 86400));
  replay->footer(kReplayRules);
  return replay;
}

CLI::App* add_check(CLI::App& app, Options& options) {
  CLI::App* check = app.add_subcommand("check", "Whether a recorded order can be kept by anyone");
  add_trace(*check, options, {"strict", "relaxed"});
  check->footer(kCheckRules);
  return check;
}

}  // namespace weft::ncclnet
