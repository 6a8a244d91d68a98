// SPDX-License-Identifier: Apache-2.0
// Running the tool; see tool_runner.h. Output goes to files, so nothing can fill a pipe and block.
#include "tests/tools/tool_runner.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace weft::test {
namespace {

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    ADD_FAILURE() << name << " is not set: run this through tests/run or meson test";
  return value != nullptr ? value : "";
}

std::string contents(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string last_line_of(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t start = text.rfind('\n');
  return start == std::string::npos ? text : text.substr(start + 1);
}

}  // namespace

std::string tool_path() { return from_environment("WEFT_NCCLNET"); }
std::string faulty_plugin(const std::string& fault) {
  return from_environment("WEFT_FAULTY") + "/libnccl-net-" + fault + ".so";
}
std::string trace_path(const std::string& name) {
  return from_environment("WEFT_TRACES") + "/" + name;
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "weft-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  EXPECT_FALSE(path_.empty()) << "no scratch folder";
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string ToolRun::value(const std::string& key) const {
  const size_t at = last_line.find(" " + key + "=");
  if (at == std::string::npos) return {};
  const size_t from = at + key.size() + 2;
  return last_line.substr(from, last_line.find(' ', from) - from);
}

ToolRun run_tool(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& environment) {
  ScratchFolder scratch;
  ToolRun run;
  std::vector<std::string> words = {tool_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (const std::string& variable : environment) run.command += variable + " ";
  std::vector<char*> argv;
  for (std::string& word : words) {
    run.command += word + " ";
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const std::string out = scratch.path() + "/out";
  const std::string err = scratch.path() + "/err";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    for (const std::string& variable : environment) ::putenv(::strdup(variable.c_str()));
    ::execv(argv[0], argv.data());
    ::_exit(126);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.output = contents(out);
  run.errors = contents(err);
  run.last_line = last_line_of(run.output);
  return run;
}

}  // namespace weft::test
