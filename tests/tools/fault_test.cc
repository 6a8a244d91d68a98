// SPDX-License-Identifier: Apache-2.0
// Each plugin that is wrong on purpose is caught, with the right exit code and with words that
// name the kind of fault.
#include <cstdlib>
#include <regex>

#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"

namespace weft::test {
namespace {

enum Exit { kDataWrong = 1, kTimedOut = 3, kFailed = 4 };

std::string described(const char* words) { return std::string("should say: ") + words; }

struct Case {
  const char* fault;
  const char* mode;
  int exit_code;
  const char* words;  // in the last line; ECMAScript regular expression
};

std::vector<std::string> arguments_of(const Case& c) {
  std::vector<std::string> words;
  const std::string mode = c.mode;
  if (mode == "replay") words = {"replay", trace_path("a-ops-cts")};
  if (mode == "relaxed") words = {"replay", trace_path("a-ops-eager"), "--rules", "relaxed"};
  if (mode == "abort") words = {"replay", trace_path("h-abort")};
  if (mode == "unmap") words = {"replay", trace_path("h-abort"), "--after-dereg", "unmap"};
  if (mode == "kill") words = {"replay", trace_path("h-kill"), "--death-within", "0.5"};
  if (mode == "allreduce")
    words = {"allreduce", "--ranks", "2", "--bytes", "3000000", "--iterations", "10"};
  if (mode == "stream") words = {"stream", "--bytes", "64K", "--seconds", "1"};
  if (mode == "latency") words = {"latency", "--bytes", "64K", "--iterations", "1000"};
  if (mode == "groups") words = {"stream", "--bytes", "64K", "--parts", "3", "--seconds", "1"};
  for (const char* word : {"--quiet", "--timeout"}) words.push_back(word);
  // Those that hang cost this much time; the others must not be taken for a hang on a busy machine.
  words.push_back(c.exit_code == kTimedOut && mode != "kill" ? "1.5" : "60");
  words.insert(words.end(), {"--plugin", faulty_plugin(c.fault)});
  return words;
}

class FaultyPlugin : public testing::TestWithParam<Case> {};

TEST_P(FaultyPlugin, IsCaughtAndNamed) {
  const Case& c = GetParam();
  // A sanitizer would turn the crash on purpose into an exit of its own.
  const char* options = std::getenv("ASAN_OPTIONS");
  const std::string sanitizer = std::string(options != nullptr ? options : "") + ":handle_segv=0";
  const ToolRun run = run_tool(arguments_of(c), {"ASAN_OPTIONS=" + sanitizer});
  EXPECT_EQ(run.exit_code, c.exit_code) << run.command << "\n" << run.output << run.errors;
  EXPECT_EQ(run.last_line.rfind("FAIL ", 0), 0u) << run.last_line;
  EXPECT_TRUE(std::regex_search(run.last_line, std::regex(c.words))) << run.command << "\n"
                                                                     << run.last_line << "\n"
                                                                     << described(c.words);
}

const Case kCases[] = {
    {"corrupt", "replay", kDataWrong, "rank . thread .: irecv posted at line .*one byte corrupted"},
    {"corrupt", "allreduce", kDataWrong, "wrong bytes in the result: 1 of"},
    {"corrupt", "stream", kDataWrong, "one byte corrupted"},
    {"corrupt", "latency", kDataWrong, "rank . message .*one byte corrupted"},
    {"drop", "replay", kTimedOut, "timed out.*rank .: thread . line .*test q"},
    {"drop", "allreduce", kTimedOut, "timed out.*posted receives done"},
    {"drop", "stream", kTimedOut, "timed out.*posted receives done"},
    {"drop", "latency", kTimedOut, "timed out.*posted receives done"},
    {"reorder", "replay", kDataWrong, "wrong bytes"},
    {"reorder", "allreduce", kDataWrong, "wrong bytes in the result|before its data was there"},
    {"reorder", "stream", kDataWrong, "wrong bytes"},
    {"size", "replay", kDataWrong, "wrong size: expected .* test reported"},
    {"size", "allreduce", kDataWrong, "wrong size"},
    {"size", "stream", kDataWrong, "wrong size"},
    {"size", "latency", kDataWrong, "wrong size: expected 65536, test reported"},
    {"size-overflow", "replay", kDataWrong, "test wrote a size beyond the 1"},
    {"size-overflow", "groups", kDataWrong, "test wrote a size beyond the [13]"},
    {"overrun", "replay", kDataWrong, "bytes past the received .* were overwritten"},
    {"overrun", "allreduce", kDataWrong, "bytes past the received .* were overwritten"},
    {"overrun", "stream", kDataWrong, "bytes past the received .* were overwritten"},
    {"overrun", "latency", kDataWrong, "bytes past the received .* were overwritten"},
    {"early", "replay", kDataWrong, "wrong bytes"},
    {"early", "allreduce", kDataWrong, "before its data was there"},
    {"early", "stream", kDataWrong, "wrong bytes"},
    {"early", "latency", kDataWrong, "wrong bytes"},
    {"stale", "replay", kDataWrong, "wrong bytes .*bytes 0 of q"},
    {"stale", "allreduce", kDataWrong, "wrong bytes"},
    {"stale", "stream", kDataWrong, "wrong bytes: here is message"},
    {"stale", "latency", kDataWrong, "wrong bytes"},
    {"slot", "groups", kDataWrong, "wrong bytes: here is message . part"},
    {"late-read", "replay", kDataWrong, "wrong bytes"},
    {"late-read", "stream", kDataWrong, "wrong bytes"},
    {"late-read", "latency", kDataWrong, "wrong bytes"},
    {"hang", "replay", kTimedOut, "timed out.*line "},
    {"block", "replay", kTimedOut, "inside the plugin's test"},
    {"block", "stream", kTimedOut, "inside the plugin's test"},
    {"crash", "replay", kFailed, "killed by signal 11 .*line .*inside the plugin's isend"},
    {"crash", "stream", kFailed, "killed by signal 11 .*inside the plugin's isend"},
    {"crash", "latency", kFailed, "killed by signal 11 .*inside the plugin's isend"},
    {"error", "replay", kFailed, "thread . line .*: the plugin's test returned ncclSystemError"},
    {"error", "allreduce", kFailed, "the plugin's test returned ncclSystemError"},
    {"no-connect", "replay", kTimedOut, "line .*(connect|accept)"},
    {"no-connect", "stream", kTimedOut, "connecting \\(0 of 1 are up\\)"},
    {"corrupt", "relaxed", kDataWrong, "irecv posted at line .*one byte corrupted"},
    {"drop", "relaxed", kTimedOut, "timed out.*rank .: thread . line .*test q"},
    {"reorder", "relaxed", kDataWrong, "wrong bytes"},
    {"size", "relaxed", kDataWrong, "wrong size: expected .* test reported"},
    {"overrun", "relaxed", kDataWrong, "bytes past the received .* were overwritten"},
    {"early", "relaxed", kDataWrong, "wrong bytes"},
    {"stale", "relaxed", kDataWrong, "wrong bytes .*bytes 0 of q"},
    {"late-read", "relaxed", kDataWrong, "wrong bytes"},
    {"hang", "relaxed", kTimedOut, "timed out.*line "},
    {"block", "relaxed", kTimedOut, "inside the plugin's test"},
    {"crash", "relaxed", kFailed, "killed by signal 11 .*line .*inside the plugin's isend"},
    {"error", "relaxed", kFailed, "the plugin's test returned ncclSystemError"},
    {"no-connect", "relaxed", kTimedOut, "line .*(connect|accept)"},
    {"corrupt", "abort", kDataWrong, "irecv posted at line .*one byte corrupted"},
    {"late-write", "abort", kDataWrong,
     "rank . memory of m. .registered at line .* was written after its deregMr: the first is byte "
     "0"},
    {"late-write", "unmap", kFailed, "killed by signal 11 .*inside the plugin's closeRecv"},
    {"deaf", "kill", kTimedOut,
     "rank . thread . line .*killed, no call has returned ncclRemoteErr"},
    // Rank 0 is told by its receives; rank 1 has only a send to the dead, which is never taken.
    {"deaf-send", "kill", kTimedOut, "rank 1 thread . line .*no call has returned ncclRemoteError"},
    {"wrong-error", "kill", kFailed, "rank 0 thread . line .*: the plugin's test returned ncclSys"},
    {"crash", "kill", kFailed, "killed by signal 11 .*line .*inside the plugin's isend"},
};

INSTANTIATE_TEST_SUITE_P(Faults, FaultyPlugin, testing::ValuesIn(kCases), [](const auto& c) {
  std::string text = std::string(c.param.fault) + "_" + c.param.mode;
  for (char& ch : text) ch = ch == '-' ? '_' : ch;
  return text;
});

TEST(FaultyPluginLog, IsPassedOnWithTheRank) {
  const ToolRun run = run_tool({"stream", "--bytes", "64K", "--seconds", "1", "--quiet", "--plugin",
                                faulty_plugin("error")});
  EXPECT_TRUE(std::regex_search(run.errors, std::regex("rank [01]: plugin WARN .*a made-up error")))
      << run.command << "\n"
      << run.errors;
}

}  // namespace
}  // namespace weft::test
