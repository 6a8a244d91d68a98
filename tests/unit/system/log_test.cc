// SPDX-License-Identifier: Apache-2.0
//
// The log sink: levels, truncation, what never gets out, rate limits, threads.
#include "transport/system/log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace weft {
namespace {
struct Hostile {};
struct Counted {};
int formatted = 0;
}  // namespace
}  // namespace weft

template <>
struct fmt::formatter<weft::Hostile> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  auto format(const weft::Hostile&, format_context& context) const -> decltype(context.out()) {
    throw std::runtime_error("hostile");
  }
};
template <>
struct fmt::formatter<weft::Counted> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  auto format(const weft::Counted&, format_context& context) const -> decltype(context.out()) {
    ++weft::formatted;
    return context.out();
  }
};

namespace weft {
namespace {

struct Line {
  Level level;
  std::string text;
  std::string function;
  int line;
};
std::mutex mutex;
std::vector<Line> lines;

void keep(Level level, const LogSite& site, const char* text) {
  const std::lock_guard guard(mutex);
  lines.push_back({level, text, site.function, site.line});
}

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    lines.clear();
    set_log_level(Level::kInfo);
    set_log_sink(keep);
  }
  void TearDown() override {
    set_log_sink(nullptr);
    set_log_level(Level::kWarn);
  }
};

TEST_F(LogTest, WritesWhatIsUrgentEnough) {
  log_error("a {}", 1);
  log_warn("b {:04x}", 255);
  log_info("c {}", "text");
  log_trace("d");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, "a 1");
  EXPECT_EQ(lines[0].level, Level::kError);
  EXPECT_EQ(lines[1].text, "b 00ff");
  EXPECT_EQ(lines[2].text, "c text");
  EXPECT_EQ(log_level(), Level::kInfo);
}

TEST_F(LogTest, SaysWhereTheLineStands) {
  const int here = __LINE__ + 1;
  log_warn("x");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].line, here);
  EXPECT_EQ(lines[0].function, "TestBody");
}

TEST_F(LogTest, FormatsNothingThatIsNotWritten) {
  formatted = 0;
  log_trace("{}", Counted{});
  EXPECT_EQ(formatted, 0);
  set_log_sink(nullptr);
  log_error("{}", Counted{});
  EXPECT_EQ(formatted, 0);
  set_log_sink(keep);
  log_error("{}", Counted{});
  EXPECT_EQ(formatted, 1);
}

TEST_F(LogTest, LongLinesAreCutAndSaySo) {
  log_warn("{}", std::string(5000, 'x'));
  log_warn("{}", std::string(kLogLineBytes - 1, 'y'));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, std::string(kLogLineBytes - 4, 'x') + "...");
  EXPECT_EQ(lines[1].text, std::string(kLogLineBytes - 1, 'y'));
}

TEST_F(LogTest, OneMessageIsOneLine) {
  log_warn("{}", "peer said\n\x1b[31mFAKE\r\tLINE\x7f");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "peer said??[31mFAKE??LINE?");
}

TEST_F(LogTest, AFormattingFailureLeavesTheBareWords) {
  log_warn("about {} here", Hostile{});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "about {} here");
}

TEST_F(LogTest, ASinkThatThrowsIsSurvived) {
  set_log_sink([](Level, const LogSite&, const char*) { throw std::runtime_error("sink"); });
  log_warn("x");
  SUCCEED();
}

TEST_F(LogTest, LimiterLetsOneThroughAPeriodAndCountsTheRest) {
  LogLimiter limiter(seconds(1));
  const Time start{5'000'000'000};
  uint64_t kept = 99;
  EXPECT_TRUE(limiter.admit(start, kept));
  EXPECT_EQ(kept, 0u);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(limiter.admit(start + milliseconds(i * 99), kept));
  EXPECT_TRUE(limiter.admit(start + seconds(1), kept));
  EXPECT_EQ(kept, 10u);
  EXPECT_FALSE(limiter.admit(start + milliseconds(1500), kept));
  EXPECT_TRUE(limiter.admit(start + seconds(3), kept));
  EXPECT_EQ(kept, 1u);
}

TEST_F(LogTest, TheMacroLimitsEachCallSiteByItself) {
  for (int i = 0; i < 1000; ++i) {
    WEFT_WARN_LIMITED("first {}", i);
    WEFT_WARN_LIMITED("second");
  }
  // Twice each were the loop ever to take longer than the limiter's period.
  ASSERT_GE(lines.size(), 2u);
  EXPECT_LT(lines.size(), 100u);
  EXPECT_EQ(lines[0].text, "first 0");
  EXPECT_EQ(lines[1].text, "second");
}

TEST_F(LogTest, ThreadsShareSinkAndLimiter) {
  static LogLimiter limiter(seconds(1000));
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&admitted, t] {
      for (int i = 0; i < 500; ++i) {
        log_warn("thread {} line {}", t, i);
        if (uint64_t kept = 0; limiter.admit(Time{i}, kept)) admitted.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines.size(), 2000u);
  EXPECT_EQ(admitted.load(), 1);
}

}  // namespace
}  // namespace weft
