// SPDX-License-Identifier: Apache-2.0
//
// Child processes that cannot outlive us: this program run again with other arguments, each in a
// network namespace of choice, with chosen descriptors at fixed numbers.
//
// A child gets SIGKILL from the kernel when its parent dies, whatever the reason, and its owner's
// destructor kills and reaps it. Spawn from the main thread of a single-threaded process (the
// death signal follows the thread that forked, and fork copies that thread only).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/common/fd.h"

namespace weft::tools {

/// How a process ended, in words: "exit status 3", "killed by signal 11 (Segmentation fault)".
std::string describe_status(int wait_status);

class Child {
 public:
  Child() = default;
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(status_, other.status_);
    return *this;
  }
  ~Child() { kill_and_reap(); }

  /// The wait status once the process has ended; does not block.
  std::optional<int> poll();
  void kill_and_reap();
  bool running() const { return pid_ > 0; }

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

struct SpawnOptions {
  std::vector<std::string> arguments;        // argv[0] included; the program is this one
  std::vector<std::pair<int, int>> inherit;  // (our descriptor, its number in the child)
  std::vector<std::string> environment;      // NAME=VALUE, over what we have
  int network_namespace = -1;                // a descriptor of one, or -1
};

/// Starts the child; on failure an empty Child and `why` set.
Child spawn(const SpawnOptions& options, std::string& why);

/// Opens the namespace called `name` (or a path, when it has a slash). Empty on failure.
UniqueFd open_network_namespace(const std::string& name, std::string& why);

}  // namespace weft::tools
