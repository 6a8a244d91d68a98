// SPDX-License-Identifier: Apache-2.0
// With a correct plugin everything passes, and the result says how much was moved and verified.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"

namespace weft::test {
namespace {

// What the trace's own list of connections says was sent.
std::string bytes_of_trace(const std::string& name) {
  std::ifstream in(trace_path(name) + "/conns.txt");
  std::string line;
  uint64_t sum = 0;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string from, send, to, recv;
    uint64_t messages = 0, bytes = 0;
    words >> from >> send >> to >> recv >> messages >> bytes;
    sum += bytes;
  }
  return std::to_string(sum);
}

std::string quoted(const char* key) {
  std::string text(1, '"');
  return text.append(key).append(1, '"');
}

std::string as_name(const testing::TestParamInfo<const char*>& trace) {
  std::string text = trace.param;
  for (char& c : text) c = c == '-' ? '_' : c;
  return text;
}

void expect_replayed(const char* trace, const char* rules) {
  const ToolRun run = run_tool({"replay", trace_path(trace), "--rules", rules, "--quiet",
                                "--timeout", "60", "--plugin", faulty_plugin("tcp")});
  EXPECT_EQ(run.exit_code, 0) << run.command << "\n" << run.output << run.errors;
  EXPECT_EQ(run.last_line.rfind("PASS replay ", 0), 0u) << run.last_line;
  EXPECT_EQ(run.value("bytes"), bytes_of_trace(trace)) << run.last_line;
  EXPECT_EQ(run.value("api"), "11");
  EXPECT_EQ(run.errors, "");
}

class StrictReplay : public testing::TestWithParam<const char*> {};

TEST_P(StrictReplay, PassesOnACorrectPlugin) { expect_replayed(GetParam(), "strict"); }

INSTANTIATE_TEST_SUITE_P(Traces, StrictReplay,
                         testing::Values("a-ops-cts", "b-ddp-cts", "c-moe-cts", "d-ll-cts",
                                         "e-gdr-reg", "f-dmabuf", "f-dmabuf-reg", "g-multi",
                                         "g-share", "g-split", "j-2pernode"),
                         as_name);

class RelaxedReplay : public testing::TestWithParam<const char*> {};

// The plugin starts a send only when its receive is posted: in strict order these would hang.
TEST_P(RelaxedReplay, PassesOnACorrectPlugin) { expect_replayed(GetParam(), "relaxed"); }

INSTANTIATE_TEST_SUITE_P(Traces, RelaxedReplay,
                         testing::Values("a-ops-eager", "b-ddp-eager", "c-moe-eager", "d-ll-eager",
                                         "i-max2"),
                         as_name);

class EndingReplay : public testing::TestWithParam<const char*> {};

// Ranks that abort with receives posted; a rank that is killed, and peers that must be told.
TEST_P(EndingReplay, PassesOnACorrectPlugin) {
  for (const char* way : {"poison", "unmap", "keep"}) {
    const ToolRun run =
        run_tool({"replay", trace_path(GetParam()), "--quiet", "--timeout", "60", "--death-within",
                  "30", "--after-dereg", way, "--plugin", faulty_plugin("tcp")});
    EXPECT_EQ(run.exit_code, 0) << run.command << "\n" << run.output << run.errors;
    EXPECT_EQ(run.value("bytes"), "18175296") << run.last_line;
    const bool dies = std::string(GetParam()) == "h-kill";
    EXPECT_EQ(run.value("death_seconds") != "", dies) << run.last_line;
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, EndingReplay, testing::Values("h-abort", "h-kill"), as_name);

TEST(EagerRun, HangsInStrictOrderWhereTheCheckSaysSo) {
  const ToolRun run = run_tool({"replay", trace_path("a-ops-eager"), "--quiet", "--timeout", "1",
                                "--plugin", faulty_plugin("tcp")});
  EXPECT_EQ(run.exit_code, 3) << run.command << "\n" << run.output << run.errors;
  EXPECT_NE(run.last_line.find("rank 0: thread 1 line 17 `1 connect"), std::string::npos)
      << run.last_line;
}

TEST(Allreduce, SumsAreRightForAnyNumberOfRanksAndAnySize) {
  for (const char* ranks : {"2", "3", "5"}) {
    const ToolRun run =
        run_tool({"allreduce", "--ranks", ranks, "--bytes", "4,36,1000,100004,3M", "--iterations",
                  "3", "--quiet", "--timeout", "60", "--plugin", faulty_plugin("tcp")});
    EXPECT_EQ(run.exit_code, 0) << run.command << "\n" << run.output << run.errors;
    const uint64_t sizes = 4 + 36 + 1000 + 100004 + (3 << 20);
    EXPECT_EQ(run.value("bytes"), std::to_string(sizes * 3 * 2 * (std::stoull(ranks) - 1)));
    EXPECT_EQ(run.value("ranks"), ranks);
  }
}

TEST(Allreduce, WorksWithOneSlotAndManyRings) {
  const ToolRun run = run_tool({"allreduce", "--ranks", "3", "--bytes", "1M", "--iterations", "2",
                                "--inflight", "1", "--channels", "7", "--slot", "4K", "--quiet",
                                "--timeout", "60", "--plugin", faulty_plugin("tcp")});
  EXPECT_EQ(run.exit_code, 0) << run.command << "\n" << run.output << run.errors;
}

TEST(Stream, EveryByteIsVerifiedForOddSizesAndGroups) {
  for (const char* bytes : {"1", "7", "15", "16", "17", "4097", "1M"}) {
    for (const char* parts : {"1", "3", "8"}) {
      const ToolRun run =
          run_tool({"stream", "--bytes", bytes, "--parts", parts, "--seconds", "0.1", "--quiet",
                    "--timeout", "60", "--plugin", faulty_plugin("tcp")});
      EXPECT_EQ(run.exit_code, 0) << run.command << "\n" << run.output << run.errors;
      EXPECT_NE(run.value("bytes"), "0") << run.command << run.last_line;
    }
  }
}

TEST(Report, AddsUpWhatEndpointsWroteAboutThemselves) {
  const ToolRun run = run_tool({"allreduce", "--ranks", "3", "--bytes", "64K", "--iterations", "1",
                                "--quiet", "--timeout", "60", "--plugin", faulty_plugin("stats")});
  ASSERT_EQ(run.exit_code, 0) << run.command << "\n" << run.output << run.errors;
  // Each endpoint says: 3 paths, of which one carried nothing; 5 sent again, 2 lost.
  EXPECT_EQ(run.value("paths"), "2");
  EXPECT_EQ(run.value("retransmitted"), "15");
  EXPECT_EQ(run.value("lost"), "6");
}

TEST(Report, HasTheSameKeysInTheLastLineAndInTheFile) {
  ScratchFolder scratch;
  const std::string file = scratch.path() + "/result.json";
  const ToolRun run = run_tool({"stream", "--bytes", "64K", "--seconds", "0.1", "--quiet", "--json",
                                file, "--timeout", "60", "--plugin", faulty_plugin("tcp")});
  ASSERT_EQ(run.exit_code, 0) << run.command << "\n" << run.output << run.errors;
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  for (const char* key :
       {"api", "ranks", "bytes", "paths", "retransmitted", "lost", "seconds", "goodput_bps"}) {
    EXPECT_NE(run.value(key), "") << key << " in " << run.last_line;
    EXPECT_NE(text.str().find(quoted(key) + ":"), std::string::npos) << key;
  }
  // This plugin says nothing of paths and losses, and nothing is made up.
  for (const char* key : {"paths", "retransmitted", "lost"}) {
    EXPECT_EQ(run.value(key), "-");
    EXPECT_NE(text.str().find(quoted(key) + ": null"), std::string::npos) << text.str();
  }
}

}  // namespace
}  // namespace weft::test
