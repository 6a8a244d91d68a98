// SPDX-License-Identifier: Apache-2.0
//
// weft_sim: the shipping engine in simulated clusters. Runs scenarios (bench/scenarios), each with
// several seeds, and prints a table: the slowest transfer against one that is alone.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/common/exit_codes.h"
#include "tools/common/numbers.h"
#include "tools/sim/scenario.h"

namespace weft::simtool {
namespace {

struct Options {
  std::vector<std::string> files;
  uint32_t first_seed = 1, last_seed = 5;
  std::string law = "nscc", selector = "reps", json;
  uint32_t segment_bytes = 0;
  int paths = 128;
  bool ecn = false, placing = false, check = false, twice = false;
};

struct Summary {
  double ideal = 0;                      // microseconds
  std::vector<double> slowest, fastest;  // by seed
  uint64_t lost = 0, retransmitted = 0, events = 0;
  double seconds = 0;
  std::string fault;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

RunConfig config_of(const Options& o, const Scenario& s, uint32_t seed) {
  RunConfig c;
  c.cluster.topology = s.topology;
  if (o.ecn) {
    c.cluster.topology.cable.mark_from = s.mark_from;
    c.cluster.topology.cable.mark_all = s.mark_all;
  }
  c.cluster.paths = o.paths;
  c.cluster.placing = o.placing;
  if (o.segment_bytes != 0) c.segment_bytes = o.segment_bytes;
  c.cluster.carry = o.check;
  c.law = o.law;
  c.selector = o.selector;
  c.seed = seed;
  return c;
}

Summary run_scenario(const Options& o, const Scenario& s) {
  Summary summary;
  const auto begin = std::chrono::steady_clock::now();
  RunConfig alone = config_of(o, s, 1);
  const std::vector<Transfer> some = s.transfers(o.first_seed);
  // The farthest apart that the network has.
  alone.transfers = {{0, s.topology.hosts - 1, some[0].bytes, {}}};
  const RunResult ideal = run(alone);
  summary.fault = ideal.fault;
  const double lanes = s.traffic == Scenario::Traffic::kIncast ? s.senders : 1;
  summary.ideal = static_cast<double>(ideal.slowest.ns) / 1e3;
  if (lanes > 1) {  // all of it through one link
    const double wire = static_cast<double>(s.bytes) * (4160.0 / 4096) * 8e6 /
                        static_cast<double>(s.topology.cable.bits_per_second);
    summary.ideal += wire * (lanes - 1);
  }
  for (uint32_t seed = o.first_seed; seed <= o.last_seed && summary.fault.empty(); ++seed) {
    RunConfig config = config_of(o, s, seed);
    config.transfers = s.transfers(seed);
    config.faults = s.faults;
    const RunResult result = run(config);
    summary.fault = result.fault;
    if (o.twice && summary.fault.empty() && run(config).trace_hash != result.trace_hash)
      summary.fault = "the same seed gave another trace";
    if (!summary.fault.empty()) summary.fault += fmt::format(" (seed {})", seed);
    summary.slowest.push_back(static_cast<double>(result.slowest.ns) / 1e3);
    summary.fastest.push_back(static_cast<double>(result.fastest.ns) / 1e3);
    summary.lost += result.lost;
    summary.retransmitted += result.retransmitted;
    summary.events += result.events;
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return summary;
}

void print_head() {
  fmt::print("{:<10} {:>8}  {:>8} {:>17}  {:>6} {:>6}  {:>7}  {:>8} {:>9} {:>6}\n", "scenario",
             "alone us", "slowest", "(least - most)", "ratio", "worst", "fastest", "lost", "events",
             "s");
}

void print_row(const Scenario& s, const Summary& r) {
  if (r.slowest.empty()) return;
  const auto [least, most] = std::minmax_element(r.slowest.begin(), r.slowest.end());
  fmt::print(
      "{:<10} {:>8.1f}  {:>8.1f} {:>17}  {:>6.3f} {:>6.3f}  {:>7.1f}  {:>8} {:>9} {:>6.1f}\n",
      s.name, r.ideal, median(r.slowest), fmt::format("({:.1f} - {:.1f})", *least, *most),
      median(r.slowest) / r.ideal, *most / r.ideal, median(r.fastest), r.lost, r.events, r.seconds);
  std::fflush(stdout);
}

bool parse_seeds(const std::string& text, Options* o) {
  const size_t dots = text.find("..");
  const auto first = tools::parse_integer<uint32_t>(text.substr(0, dots));
  const auto last =
      dots == std::string::npos ? first : tools::parse_integer<uint32_t>(text.substr(dots + 2));
  if (!first || !last || *first > *last || *last - *first > 100000) return false;
  o->first_seed = *first;
  o->last_seed = *last;
  return true;
}

int run_all(const Options& o) {
  nlohmann::json json = nlohmann::json::array();
  std::string failed;
  print_head();
  for (const std::string& file : o.files) {
    std::string why;
    const auto scenario = load_scenario(file, &why);
    if (!scenario) {
      fmt::print("FAIL {}\n", why);
      return tools::kUsage;
    }
    const Summary r = run_scenario(o, *scenario);
    print_row(*scenario, r);
    if (!r.fault.empty() && failed.empty()) failed = scenario->name + ": " + r.fault;
    json.push_back({{"scenario", scenario->name},
                    {"title", scenario->title},
                    {"alone_us", r.ideal},
                    {"slowest_us", r.slowest},
                    {"fastest_us", r.fastest},
                    {"lost", r.lost},
                    {"retransmitted", r.retransmitted},
                    {"events", r.events},
                    {"reference_us", scenario->reference},
                    {"fault", r.fault}});
  }
  if (!o.json.empty()) {
    std::ofstream out(o.json);
    out << json.dump(2) << '\n';
    if (!out.flush()) {
      fmt::print("FAIL --json {}: cannot be written\n", o.json);
      return tools::kUsage;
    }
  }
  if (!failed.empty()) {
    fmt::print("FAIL {}\n", failed);
    return tools::kDataWrong;
  }
  fmt::print("PASS sim scenarios={} seeds={} law={} selector={}\n", o.files.size(),
             o.last_seed - o.first_seed + 1, o.law, o.selector);
  return tools::kGood;
}

}  // namespace
}  // namespace weft::simtool

int main(int argc, char** argv) {
  using namespace weft::simtool;
  Options o;
  std::string seeds = "1..5";
  CLI::App app("Runs the engine that ships in simulated clusters, in virtual time.");
  app.name("weft_sim");
  app.add_option("scenario", o.files, "Scenario files (bench/scenarios/*.toml)")->required();
  app.add_option("--seeds", seeds, "Which permutations and chances")
      ->type_name("A..B")
      ->capture_default_str();
  app.add_option("--law", o.law, "Congestion law")->capture_default_str();
  app.add_option("--selector", o.selector, "Path selector")->capture_default_str();
  app.add_option("--segment", o.segment_bytes, "Bytes of a segment; 0: what the network wants")
      ->capture_default_str();
  app.add_option("--paths", o.paths, "Paths of a connection")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_flag("--placing", o.placing, "The NIC places writes, unreliably; else datagrams");
  app.add_flag("--ecn", o.ecn, "Switches mark, where the scenario says from when");
  app.add_flag("--check", o.check, "Carry payload and check every byte");
  app.add_flag("--twice", o.twice, "Run each seed again and compare the traces");
  app.add_option("--json", o.json, "Write the results to FILE too")->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print("FAIL {}\n", error.what());
    return weft::tools::kUsage;
  }
  if (!parse_seeds(seeds, &o)) {
    fmt::print("FAIL --seeds {}: it is a number, or two with .. between\n", seeds);
    return weft::tools::kUsage;
  }
  return run_all(o);
}
