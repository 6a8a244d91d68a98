// SPDX-License-Identifier: Apache-2.0
// Runs the built weft_ncclnet as a user would and keeps what it printed. Where things are comes
// from the environment that meson.build sets: WEFT_NCCLNET, WEFT_FAULTY (folder of the plugins),
// WEFT_TRACES (folder of the recorded runs).
#pragma once

#include <string>
#include <vector>

namespace weft::test {

struct ToolRun {
  int exit_code = -1;     // 128 + signal when it was killed
  std::string output;     // standard output
  std::string errors;     // standard error
  std::string last_line;  // of standard output
  std::string command;    // to run it again

  /// The value of `key=` in the last line; empty when it is not there.
  std::string value(const std::string& key) const;
};

ToolRun run_tool(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& environment = {});

std::string tool_path();
std::string faulty_plugin(const std::string& fault);
std::string trace_path(const std::string& name);

/// A folder of its own that goes away with it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace weft::test
