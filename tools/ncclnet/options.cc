// SPDX-License-Identifier: Apache-2.0
// The command line of weft_ncclnet. Everything is checked here, so that the rest may trust it.
#include "tools/ncclnet/options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/common/exit_codes.h"
#include "tools/common/numbers.h"
#include "tools/ncclnet/option_checks.h"
#include "tools/ncclnet/replay_options.h"
#include "tools/ncclnet/versions.h"

namespace weft::ncclnet {
namespace {

constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxLatencyBytes = uint64_t{1} << 26;
constexpr uint64_t kMaxAllreduceBytes = uint64_t{1} << 34;

constexpr uint32_t kDefaultRoundTrips = 10000;
constexpr double kLeastSeconds = 0.001;

constexpr const char* kExamples =
    "Examples:\n"
    "  weft_ncclnet replay tests/traces/b-ddp-cts --rules strict\n"
    "  weft_ncclnet check tests/traces/b-ddp-eager --rules relaxed\n"
    "  weft_ncclnet allreduce --ranks 4 --bytes 64K,1M,32M --iterations 20\n"
    "  weft_ncclnet stream --bytes 1M --seconds 5 --plugin build/plugin/libnccl-net-weft.so\n"
    "  weft_ncclnet stream --bytes 1M --seconds 5 --ranks-in left,right --json result.json\n"
    "  weft_ncclnet latency --bytes 8 --iterations 100000\n"
    "\n"
    "Exit codes: 0 good, 1 data wrong, 2 usage, 3 timed out, 4 the plugin or a peer failed,\n"
    "77 cannot run here. The last line is PASS <what> key=value ... or FAIL <why>.";

// The plugin of the build this program belongs to, if it is there.
std::string default_plugin() {
  char self[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self);
  if (size <= 0 || size >= static_cast<ssize_t>(sizeof self)) return {};
  std::string path(self, static_cast<size_t>(size));
  for (int i = 0; i < 2; ++i)
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  path += "/plugin/libnccl-net-weft.so";
  return ::access(path.c_str(), R_OK) == 0 ? path : std::string();
}

struct Words {  // as typed; turned into Options after the checks
  std::vector<std::string> bytes;
  std::string slot = "1M";
  std::string check = "all";
  uint32_t round_trips = 0;  // of latency, as seconds: 0 when not said
  double latency_seconds = 0;
};

void add_common(CLI::App& app, Options& o) {
  app.add_option("--plugin", o.plugin,
                 "The libnccl-net-*.so to drive (default: the one built here)")
      ->type_name("PATH");
  app.add_option("--api", o.api, "Version of the plugin interface to use; max: the newest it has")
      ->type_name("6..12|max")
      ->capture_default_str();
  app.add_option("--ranks-in", o.namespaces, "Network namespaces; ranks alternate between them")
      ->type_name("NS,NS")
      ->delimiter(',');
  app.add_option("--timeout", o.timeout_s, "Give up after S seconds, exit 3")
      ->type_name("S")
      ->capture_default_str()
      ->check(decimal_within(0.1, 86400));
  app.add_option("--json", o.json, "Write the result to FILE too")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_flag("--quiet", o.quiet, "No progress on standard error");
  app.add_flag("--verbose", o.verbose, "Show all that the plugin logs, not warnings only");
}

std::string check_common(Options& o) {
  const auto version = tools::parse_integer<int>(o.api);
  if (o.api != "max" && (!version || *version < kOldestVersion || *version > kNewestVersion)) {
    return fmt::format("--api {}: not a version; use {} to {}, or max", o.api, kOldestVersion,
                       kNewestVersion);
  }
  if (o.plugin.empty()) o.plugin = default_plugin();
  if (o.plugin.empty()) return "no plugin built beside this program: name one with --plugin PATH";
  struct stat about {};
  if (::access(o.plugin.c_str(), R_OK) != 0 || ::stat(o.plugin.c_str(), &about) != 0) {
    return fmt::format("--plugin {}: no such file, or not readable", o.plugin);
  }
  if (S_ISDIR(about.st_mode)) {
    return fmt::format("--plugin {}: a folder; name the libnccl-net-*.so in it", o.plugin);
  }
  for (const std::string& name : o.namespaces) {
    if (name.empty()) return "--ranks-in has an empty name";
  }
  return {};
}

std::string check_bytes(Options& o, const Words& words, uint64_t most, uint64_t multiple) {
  for (const std::string& word : words.bytes) {
    const auto size = tools::parse_size(word);
    if (!size || *size == 0 || *size > most || *size % multiple != 0) {
      return fmt::format(
          "--bytes {}: a size is a number such as 4096, 64K or 1M, above 0, at most {}{}", word,
          most, multiple > 1 ? fmt::format(", and a multiple of {}", multiple) : "");
    }
    o.bytes.push_back(*size);
  }
  const auto slot = tools::parse_size(words.slot);
  if (!slot || *slot < 4096 || *slot > (1 << 26) || *slot % 128 != 0) {
    return fmt::format("--slot {}: from 4K to 64M, a multiple of 128", words.slot);
  }
  o.slot_bytes = *slot;
  return {};
}

int usage(const CLI::App& app, const std::string& why) {
  const bool top = app.get_parent() == nullptr;
  fmt::print(stderr, "weft_ncclnet: {}\nTry: weft_ncclnet {}--help\n", why,
             top ? "" : app.get_name() + " ");
  fmt::print("FAIL {}\n", why);
  return tools::kUsage;
}

CLI::App* add_latency(CLI::App& app, Words& words) {
  CLI::App* latency =
      app.add_subcommand("latency", "Two ranks, ping-pong: the one-way time, every byte checked");
  latency->add_option("--bytes", words.bytes, "Size of a message (8, 64K, 1M ... work)")
      ->required()
      ->type_name("B")
      ->expected(1);
  latency
      ->add_option("--iterations", words.round_trips,
                   "Round trips to time (default: 10000, with --seconds as many as there is time)")
      ->type_name("N")
      ->transform(whole_within(1, 1000000000));
  latency->add_option("--seconds", words.latency_seconds, "Stop after S seconds at the latest")
      ->type_name("S")
      ->check(decimal_within(kLeastSeconds, 86400));
  return latency;
}

void add_modes(CLI::App& app, Options& o, Words& words) {
  CLI::App* replay = add_replay(app, o);
  add_check(app, o);
  CLI::App* ring = app.add_subcommand("allreduce", "Ring all-reduce over the plugin, sums checked");
  ring->add_option("--ranks", o.ranks, "Processes in the ring")
      ->type_name("N")
      ->capture_default_str()
      ->transform(whole_within(2, 64));
  ring->add_option("--bytes", words.bytes, "Sizes to reduce, in bytes (64K, 1M ... work too)")
      ->required()
      ->type_name("A,B")
      ->delimiter(',');
  ring->add_option("--iterations", o.iterations, "Times each size is reduced")
      ->type_name("K")
      ->capture_default_str()
      ->transform(whole_within(1, 1000000));
  ring->add_option("--channels", o.channels, "Rings at once, each with a connection of its own")
      ->type_name("C")
      ->capture_default_str()
      ->transform(whole_within(1, 32));
  ring->add_option("--slot", words.slot, "Largest message; a ring has --inflight of them a side")
      ->type_name("SIZE")
      ->capture_default_str();
  CLI::App* stream = app.add_subcommand("stream", "One sender, one receiver, every byte checked");
  stream->add_option("--bytes", words.bytes, "Size of a message (64K, 1M ... work too)")
      ->required()
      ->type_name("B")
      ->expected(1);
  stream->add_option("--seconds", o.seconds, "How long to send")
      ->type_name("S")
      ->capture_default_str()
      ->check(decimal_within(kLeastSeconds, 86400));
  stream->add_option("--parts", o.parts, "Messages in one grouped receive, told apart by tag")
      ->type_name("N")
      ->capture_default_str()
      ->transform(whole_within(1, 8));
  stream
      ->add_option("--check", words.check, "What of the bytes to check: all, or a sample (1 in 64)")
      ->type_name("all|sample")
      ->capture_default_str()
      ->check(CLI::IsMember({"all", "sample"}));
  for (CLI::App* mode : {ring, stream}) {
    mode->add_option("--inflight", o.inflight, "Most messages (groups) under way on a connection")
        ->type_name("W")
        ->capture_default_str()
        ->transform(whole_within(1, 32));
  }
  CLI::App* latency = add_latency(app, words);
  for (CLI::App* mode : {replay, ring, stream, latency}) add_common(*mode, o);
}

}  // namespace

std::string Options::mode_name() const {
  switch (mode) {
    case Mode::kReplay: return "replay";
    case Mode::kCheck: return "check";
    case Mode::kAllreduce: return "allreduce";
    case Mode::kStream: return "stream";
    case Mode::kLatency: return "latency";
  }
  return "?";
}

std::optional<Options> parse_options(int argc, const char* const* argv, int& exit_code) {
  Options o;
  Words words;
  CLI::App app("Drives any NCCL network plugin as NCCL does, without NCCL and without a GPU.");
  app.name("weft_ncclnet");
  app.footer(kExamples);
  app.require_subcommand(1);
  add_modes(app, o, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    exit_code = app.exit(help);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    std::string why = error.what();
    if (chosen.empty()) {
      why = fmt::format("{}; the first word is one of replay, check, allreduce, stream, latency",
                        argc < 2 ? "nothing to do" : fmt::format("'{}' is no subcommand", argv[1]));
    }
    exit_code = usage(chosen.empty() ? app : *chosen[0], why);
    return std::nullopt;
  }
  CLI::App* chosen = app.get_subcommands()[0];
  std::string why;
  if (chosen->get_name() == "replay") {
    o.mode = Mode::kReplay;
  } else if (chosen->get_name() == "check") {
    o.mode = Mode::kCheck;
    return o;
  } else if (chosen->get_name() == "allreduce") {
    o.mode = Mode::kAllreduce;
    why = check_bytes(o, words, kMaxAllreduceBytes, 4);
  } else if (chosen->get_name() == "latency") {
    o.mode = Mode::kLatency;
    o.seconds = words.latency_seconds;
    const bool either = words.round_trips != 0 || o.seconds > 0;
    o.iterations = either ? words.round_trips : kDefaultRoundTrips;
    why = check_bytes(o, words, kMaxLatencyBytes, 1);
  } else {
    o.mode = Mode::kStream;
    o.check_all = words.check == "all";
    why = check_bytes(o, words, kMaxMessageBytes, 1);
  }
  const bool timed = o.mode == Mode::kStream || o.mode == Mode::kLatency;
  if (why.empty() && timed && o.seconds >= o.timeout_s) {
    why = fmt::format("--seconds {:g} does not fit into --timeout {:g}", o.seconds, o.timeout_s);
  }
  if (why.empty()) why = check_common(o);
  if (!why.empty()) {
    exit_code = usage(*chosen, why);
    return std::nullopt;
  }
  return o;
}

}  // namespace weft::ncclnet
