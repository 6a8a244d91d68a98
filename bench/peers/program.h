// SPDX-License-Identifier: Apache-2.0
//
// What makes the small programs of this folder programs: a first word that says which part one
// plays, arguments that are checked before anything is done, and an end in words with an exit code
// of tools/common/exit_codes.h. One thread a process.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstddef>
#include <initializer_list>

#include "tools/common/exit_codes.h"

namespace weft::peers {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxDatagram = 65507;
constexpr size_t kMaxSource = size_t{8} << 30;
constexpr double kMaxSeconds = 86400;

struct Arguments {
  sockaddr_in at{};
  size_t payload = 1472, bytes = 8, source = 4 << 20;
  double seconds = 1, timeout = 30;
  bool tcp = false;
};

struct Role {
  const char* name;
  int (*play)(const Arguments&);
};

/// Plays the role that argv[1] names and returns the exit code; words and kUsage where what was
/// typed is not understood.
int run_program(int argc, char** argv, std::initializer_list<Role> roles, const char* usage);

/// Ends the program: a system call failed, as errno says; or --timeout is over.
[[noreturn]] void fail(const char* what);
[[noreturn]] void time_out();

inline Clock::time_point in(double seconds) {
  return Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

}  // namespace weft::peers
