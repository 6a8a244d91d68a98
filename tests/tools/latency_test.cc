// SPDX-License-Identifier: Apache-2.0
// weft_ncclnet latency: what it reports, when it ends, and that its percentiles are percentiles.
#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"
#include "tools/ncclnet/time_histogram.h"

namespace weft::test {
namespace {

constexpr uint64_t kWarmUp = 100;  // rounds that are verified and not timed

ToolRun run_latency(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "latency");
  for (const char* word : {"--quiet", "--timeout", "60", "--plugin"}) arguments.push_back(word);
  arguments.push_back(faulty_plugin("tcp"));
  return run_tool(arguments);
}

TEST(Latency, VerifiesEveryByteOfEverySizeBothWays) {
  for (const uint64_t bytes : {1u, 7u, 8u, 4097u, 1048576u}) {
    const ToolRun run = run_latency({"--bytes", std::to_string(bytes), "--iterations", "20"});
    EXPECT_EQ(run.exit_code, 0) << run.command << "\n" << run.output << run.errors;
    EXPECT_EQ(run.last_line.rfind("PASS latency ", 0), 0u) << run.last_line;
    EXPECT_EQ(run.value("bytes"), std::to_string(2 * bytes * (20 + kWarmUp))) << run.last_line;
    EXPECT_EQ(run.value("round_trips"), "20");
    EXPECT_EQ(run.value("ranks"), "2");
  }
}

TEST(Latency, SaysPercentilesInOrderInTheLastLineAndInTheFile) {
  ScratchFolder scratch;
  const std::string file = scratch.path() + "/result.json";
  const ToolRun run = run_latency({"--bytes", "8", "--iterations", "500", "--json", file});
  ASSERT_EQ(run.exit_code, 0) << run.command << "\n" << run.output << run.errors;
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  double last = 0;
  for (const char* key : {"p50_us", "p90_us", "p99_us", "max_us"}) {
    ASSERT_NE(run.value(key), "") << run.last_line;
    const double us = std::stod(run.value(key));
    EXPECT_GT(us, 0) << key << run.last_line;
    EXPECT_GE(us, last) << key << " " << run.last_line;
    last = us;
    EXPECT_NE(text.str().find(std::string("\"") + key + "\": "), std::string::npos) << text.str();
  }
  for (const char* key : {"api", "paths", "retransmitted", "lost", "seconds", "goodput_bps"}) {
    EXPECT_NE(run.value(key), "") << key << " in " << run.last_line;
  }
  // No round trip can have taken longer than all of them.
  EXPECT_LE(2e-6 * last, std::stod(run.value("total_seconds"))) << run.last_line;
}

TEST(Latency, EndsByTimeWhereThereIsNoCountAndByWhateverComesFirst) {
  const ToolRun timed = run_latency({"--bytes", "8", "--seconds", "0.2"});
  EXPECT_EQ(timed.exit_code, 0) << timed.command << "\n" << timed.output << timed.errors;
  EXPECT_NE(timed.value("round_trips"), "0") << timed.last_line;
  EXPECT_GE(std::stod(timed.value("seconds")), 0.2) << timed.last_line;
  const ToolRun counted = run_latency({"--bytes", "8", "--seconds", "50", "--iterations", "30"});
  EXPECT_EQ(counted.value("round_trips"), "30") << counted.command << "\n" << counted.output;
}

TEST(TimeHistogram, IsWithinAPercentOfSortedSamples) {
  constexpr unsigned kSeed = 1;
  std::mt19937_64 random(kSeed);
  for (const int most_bits : {3, 10, 20, 39}) {
    ncclnet::TimeHistogram histogram;
    std::vector<uint64_t> samples;
    for (int i = 0; i < 10001; ++i) {
      samples.push_back(random() >> (64 - 1 - i % most_bits));
      histogram.add(static_cast<int64_t>(samples.back()));
    }
    std::sort(samples.begin(), samples.end());
    EXPECT_EQ(histogram.count(), samples.size());
    EXPECT_EQ(histogram.max_ns(), samples.back());
    for (const double share : {0.0, 0.01, 0.5, 0.9, 0.99, 0.9999, 1.0}) {
      const auto rank = static_cast<size_t>(share * static_cast<double>(samples.size()) + 0.999999);
      const auto exact = static_cast<double>(samples[rank == 0 ? 0 : rank - 1]);
      EXPECT_NEAR(static_cast<double>(histogram.percentile_ns(share)), exact, exact * 0.01)
          << share << " of samples of up to " << most_bits << " bits";
    }
  }
}

TEST(TimeHistogram, TakesWhatNoClockShouldSay) {
  ncclnet::TimeHistogram histogram;
  EXPECT_EQ(histogram.percentile_ns(0.5), 0u);
  histogram.add(-5);
  histogram.add(INT64_MAX);
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.percentile_ns(0.5), 0u);
  EXPECT_EQ(histogram.max_ns(), static_cast<uint64_t>(INT64_MAX));
}

}  // namespace
}  // namespace weft::test
