// SPDX-License-Identifier: Apache-2.0
// Seeded runs of the connection over the simulated network: every byte right, in bounded time, and
// the same seed always the same trace.
//
//   seeds_test --scenario NAME --seeds FROM..TO [--again N] [--law NAME] [--selector NAME]
//                                                              --again: every Nth seed runs twice
//   seeds_test --list
//
// A failure prints the seed and the command that reruns it.
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

#include "multipath/congestion/law.h"
#include "multipath/path/selector.h"
#include "tests/sim/scenarios.h"

using weft::test::Outcome;
using weft::test::Scenario;
using weft::test::World;

namespace {

struct Options {
  std::string scenario, law = "nscc", selector = "reps";
  uint64_t from = 1, to = 20, again = 1;
};

bool number(std::string_view text, uint64_t* out) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), *out);
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

bool parse(int argc, char** argv, Options* o) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i], value = argv[i + 1];
    if (name == "--scenario") {
      o->scenario = value;
    } else if (name == "--law") {
      o->law = value;
    } else if (name == "--selector") {
      o->selector = value;
    } else if (name == "--seeds") {
      const size_t dots = value.find("..");
      if (dots == std::string_view::npos) {
        if (!number(value, &o->from)) return false;
        o->to = o->from;
      } else if (!number(value.substr(0, dots), &o->from) ||
                 !number(value.substr(dots + 2), &o->to)) {
        return false;
      }
    } else if (name != "--again" || !number(value, &o->again)) {
      return false;
    }
  }
  return argc % 2 == 1 && !o->scenario.empty() && o->again > 0;
}

// What is not known would be replaced by the connection, and another one tested.
bool known(const Options& o) {
  return weft::make_law(o.law, {}, weft::Pipe({})) && weft::make_selector(o.selector, {});
}

int run(Scenario scenario, const Options& o, const char* program) {
  scenario.traffic.law = o.law;
  scenario.traffic.selector = o.selector;
  uint64_t bytes = 0, messages = 0, retransmitted = 0, lost = 0, failures = 0;
  weft::Duration longest{};
  for (uint64_t seed = o.from; seed <= o.to; ++seed) {
    const Outcome first = World(scenario.network, scenario.traffic, seed).run();
    std::string fault = first.fault;
    if (fault.empty() && scenario.clean && first.retransmitted > 0) {
      fault = "segments were sent again although nothing was lost";
    }
    if (fault.empty() && seed % o.again == 0) {
      const Outcome second = World(scenario.network, scenario.traffic, seed).run();
      if (second.trace_hash != first.trace_hash) fault = "the same seed gave another trace";
    }
    bytes += first.bytes;
    messages += first.messages;
    retransmitted += first.retransmitted;
    lost += first.network.lost;
    longest = std::max(longest, first.took);
    if (fault.empty()) continue;
    ++failures;
    std::printf(
        "FAIL seed %llu: %s\n  rerun: %s --scenario %s --seeds %llu --law %s --selector %s\n",
        static_cast<unsigned long long>(seed), fault.c_str(), program, scenario.name,
        static_cast<unsigned long long>(seed), o.law.c_str(), o.selector.c_str());
  }
  std::printf(
      "%s: %llu seeds, %llu messages, %.1f MB verified, %llu packets lost, %llu sent again, "
      "longest run %.1f ms of virtual time, %llu failed\n",
      scenario.name, static_cast<unsigned long long>(o.to - o.from + 1),
      static_cast<unsigned long long>(messages), static_cast<double>(bytes) / 1e6,
      static_cast<unsigned long long>(lost), static_cast<unsigned long long>(retransmitted),
      longest.seconds() * 1e3, static_cast<unsigned long long>(failures));
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const Scenario& s : weft::test::scenarios()) std::printf("%s\n", s.name);
    return 0;
  }
  Options options;
  if (!parse(argc, argv, &options) || !known(options)) {
    std::fprintf(stderr,
                 "usage: %s --scenario NAME --seeds FROM..TO [--again N] [--law NAME] "
                 "[--selector NAME] | --list\n",
                 argv[0]);
    return 2;
  }
  for (const Scenario& s : weft::test::scenarios()) {
    if (options.scenario == s.name) return run(s, options, argv[0]);
  }
  std::fprintf(stderr, "no scenario is called '%s'; --list names them\n", options.scenario.c_str());
  return 2;
}
