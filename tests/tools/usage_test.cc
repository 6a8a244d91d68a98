// SPDX-License-Identifier: Apache-2.0
// What a user may get wrong is refused with exit code 2 and words that help; nobody is left behind
// when the tool is killed.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"

namespace weft::test {
namespace {

constexpr int kUsage = 2;
constexpr int kFailed = 4;

void expect_refused(const std::vector<std::string>& arguments, int code, const char* words) {
  const ToolRun run = run_tool(arguments);
  EXPECT_EQ(run.exit_code, code) << run.command << "\n" << run.output << run.errors;
  EXPECT_EQ(run.last_line.rfind("FAIL ", 0), 0u) << run.command << "\n" << run.output;
  EXPECT_TRUE(std::regex_search(run.output + run.errors, std::regex(words)))
      << run.command << "\n"
      << run.output << run.errors << "\nshould say: " << words;
}

TEST(Usage, IsRefusedWithWordsThatHelp) {
  const std::string tcp = faulty_plugin("tcp");
  const std::string trace = trace_path("a-ops-cts");
  expect_refused({}, kUsage, "nothing to do.*replay, check, allreduce, stream, latency");
  expect_refused({"sideways"}, kUsage, "'sideways' is no subcommand.*latency");
  expect_refused({"stream", "--plugin", tcp}, kUsage, "--bytes");
  expect_refused({"stream", "--bytes", "12x", "--plugin", tcp}, kUsage, "12x.*64K");
  expect_refused({"stream", "--bytes", "0", "--plugin", tcp}, kUsage, "above 0");
  expect_refused({"stream", "--bytes", "1M", "--frob", "--plugin", tcp}, kUsage, "frob");
  expect_refused({"stream", "--bytes", "1M", "--seconds", "90", "--plugin", tcp}, kUsage,
                 "--timeout");
  expect_refused({"latency", "--plugin", tcp}, kUsage, "--bytes");
  expect_refused({"latency", "--bytes", "0", "--plugin", tcp}, kUsage, "above 0");
  expect_refused({"latency", "--bytes", "65M", "--plugin", tcp}, kUsage, "at most 67108864");
  expect_refused({"latency", "--bytes", "8", "--iterations", "0", "--plugin", tcp}, kUsage,
                 "--iterations");
  expect_refused({"latency", "--bytes", "8", "--seconds", "90", "--plugin", tcp}, kUsage,
                 "--timeout");
  expect_refused({"allreduce", "--bytes", "6", "--plugin", tcp}, kUsage, "multiple of 4");
  expect_refused({"allreduce", "--bytes", "1M", "--ranks", "1", "--plugin", tcp}, kUsage, "ranks");
  expect_refused({"replay", trace, "--rules", "sloppy", "--plugin", tcp}, kUsage,
                 "sloppy.*strict.*relaxed");
  expect_refused({"replay", trace, "--api", "5", "--plugin", tcp}, kUsage, "not a version");
  expect_refused({"replay", trace, "--api", "13", "--plugin", tcp}, kUsage, "not a version");
  expect_refused({"replay", "/no/such/folder", "--plugin", tcp}, kUsage, "rank0.trace");
  expect_refused({"replay", trace_path("h-abort"), "--rules", "relaxed", "--plugin", tcp}, kUsage,
                 "ends in the middle; it can be replayed in strict order only");
  expect_refused({"replay", trace_path("h-abort"), "--after-dereg", "burn", "--plugin", tcp},
                 kUsage, "burn not in .keep,poison,unmap");
  expect_refused({"replay", trace, "--plugin", tcp, "--ranks-in", "no-such-ns"}, kUsage,
                 "ip netns list");
  expect_refused({"replay", trace, "--plugin", tcp, "--ranks-in", "/proc/self/ns/mnt"}, kUsage,
                 "/proc/self/ns/mnt is no network namespace");
}

// A NaN is within no bounds, 010 is no 8, and nothing but a plain decimal number is one.
TEST(Usage, ANumberThatIsNoneOrOutOfBoundsIsRefusedWithTheBounds) {
  const std::string tcp = faulty_plugin("tcp");
  for (const char* mode : {"stream", "latency"}) {
    for (const char* seconds : {"nan", "inf", "-1", "0", "1e-9", "0x1p-1", "1,5", ""}) {
      expect_refused({mode, "--bytes", "8", "--seconds", seconds, "--plugin", tcp}, kUsage,
                     "--seconds: .*from 0.001 to 86400");
    }
  }
  for (const char* timeout : {"nan", "-inf", "0"}) {
    expect_refused({"allreduce", "--bytes", "8", "--timeout", timeout, "--plugin", tcp}, kUsage,
                   "--timeout: .*from 0.1 to 86400");
  }
  for (const char* number : {"nan", "inf", "-1", "0", "1.5", "0x2", "4294967298", ""}) {
    expect_refused({"latency", "--bytes", "8", "--iterations", number, "--plugin", tcp}, kUsage,
                   "--iterations: .*from 1 to 1000000000");
    for (const char* option : {"--ranks", "--iterations", "--channels", "--inflight"}) {
      expect_refused({"allreduce", "--bytes", "8", option, number, "--plugin", tcp}, kUsage,
                     "--[a-z]+: '.*' is no whole number from [12] to [0-9]+");
    }
    expect_refused({"stream", "--bytes", "8", "--parts", number, "--plugin", tcp}, kUsage,
                   "--parts: .*from 1 to 8");
  }
  const ToolRun run = run_tool({"latency", "--bytes", "8", "--iterations", "010", "--plugin", tcp});
  EXPECT_EQ(run.value("round_trips"), "10") << run.command << run.output << run.errors;
}

// Before the run, which may be long.
TEST(Usage, AJsonFileThatCannotBeWrittenIsRefusedAtTheStart) {
  const std::string block = faulty_plugin("block");  // would hang
  ScratchFolder scratch;
  const struct {
    std::string path;
    const char* words;
  } kWrong[] = {{scratch.path() + "/absent/x.json", "No such file"},
                {scratch.path(), "Is a directory"},
                {trace_path("README.md") + "/x.json", "Not a directory"},
                {"", "--json: is empty"}};
  for (const auto& wrong : kWrong) {
    expect_refused({"stream", "--bytes", "8", "--plugin", block, "--json", wrong.path}, kUsage,
                   wrong.words);
  }
}

TEST(Usage, APluginThatIsNoneIsSaidToBeNone) {
  expect_refused({"stream", "--bytes", "1M", "--plugin", "/no/such/plugin.so"}, kUsage,
                 "/no/such/plugin.so: no such file");
  expect_refused({"stream", "--bytes", "1M", "--plugin", "/tmp"}, kUsage, "/tmp: a folder");
  expect_refused({"stream", "--bytes", "1M", "--plugin", trace_path("README.md")}, kFailed,
                 "cannot load the plugin");
  expect_refused({"stream", "--bytes", "1M", "--api", "11", "--plugin", faulty_plugin("no-table")},
                 kFailed, "no ncclNetPlugin_v11.*it has v8");
}

TEST(Usage, HelpExplainsAndHasExamples) {
  for (const char* mode : {"replay", "check", "allreduce", "stream", "latency"}) {
    EXPECT_EQ(run_tool({mode, "--help"}).exit_code, 0);
  }
  const ToolRun run = run_tool({"--help"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.output.find("Examples:"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("weft_ncclnet latency --bytes 8"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("77 cannot run here"), std::string::npos) << run.output;
}

// Any line of a trace that is damaged is refused with its number, or still makes a replay that
// ends in time; the tool never crashes on a file.
TEST(Usage, ADamagedTraceIsRefusedWithFileAndLine) {
  std::ifstream in(trace_path("d-ll-cts") + "/rank1.trace");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_GT(lines.size(), 100u);
  const struct {
    const char* what;
    const char* from;
    const char* to;
  } kDamages[] = {{"no such call", " irecv r0", " irekv r0"},
                  {"comm out of range", " isend s0", " isend s99"},
                  {"negative size", ":65536:", ":-5:"},
                  {"outside its region", "+0:65536", "+999999999:65536"},
                  {"unknown request", "test q3", "test q399"},
                  {"no number", "size=", "size=x"},
                  {"an id that jumps", "= 0 q5", "= 0 q6"},
                  {"cut short", " = 0 r0", " ="}};
  for (const auto& damage : kDamages) {
    ScratchFolder scratch;
    std::filesystem::copy(trace_path("d-ll-cts") + "/rank0.trace", scratch.path() + "/rank0.trace");
    std::ofstream out(scratch.path() + "/rank1.trace");
    size_t at = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string line = lines[i];
      const size_t found = line.find(damage.from);
      if (at == 0 && found != std::string::npos) {
        line.replace(found, std::string(damage.from).size(), damage.to);
        at = i + 1;
      }
      out << line << '\n';
    }
    out.close();
    ASSERT_GT(at, 0u) << damage.what;
    SCOPED_TRACE(damage.what);
    expect_refused({"replay", scratch.path(), "--plugin", faulty_plugin("tcp")}, kUsage,
                   ("rank1.trace line " + std::to_string(at) + ": ").c_str());
  }
}

TEST(Usage, ATraceThatIsNoFileIsRefusedAndNotWaitedFor) {
  ScratchFolder scratch;
  const std::string file = scratch.path() + "/rank0.trace";
  const std::string tcp = faulty_plugin("tcp");
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  expect_refused({"replay", scratch.path(), "--plugin", tcp}, kUsage, "is no regular file");
  std::filesystem::remove(file);
  ASSERT_EQ(::symlink("/dev/zero", file.c_str()), 0);
  expect_refused({"replay", scratch.path(), "--plugin", tcp}, kUsage, "is no regular file");
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::ifstream in("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> pids;
  for (pid_t pid; in >> pid;) pids.push_back(pid);
  return pids;
}

// A process that has ended but is not reaped yet (its parent is gone) counts as gone.
bool alive(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(in, text)) return false;
  const size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] != 'Z' &&
         text[end + 2] != 'X';
}

TEST(Processes, NoRankOutlivesTheTool) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    const std::string tool = tool_path();
    const std::string plugin = faulty_plugin("block");
    const pid_t parent = ::fork();
    if (parent == 0) {
      ::close(STDOUT_FILENO);
      ::execl(tool.c_str(), tool.c_str(), "stream", "--bytes", "64K", "--plugin", plugin.c_str(),
              "--quiet", nullptr);
      ::_exit(126);
    }
    std::vector<pid_t> ranks;
    for (int i = 0; i < 1000 && ranks.size() < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ranks = children_of(parent);
    }
    EXPECT_EQ(ranks.size(), 2u);
    ::kill(parent, signal);
    ::waitpid(parent, nullptr, 0);
    bool left = true;
    for (int i = 0; i < 1000 && left; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      left = false;
      for (const pid_t rank : ranks) left = left || alive(rank);
    }
    EXPECT_FALSE(left) << "a rank is left after signal " << signal;
  }
}

}  // namespace
}  // namespace weft::test
