// SPDX-License-Identifier: Apache-2.0
// The tools' clock: CLOCK_MONOTONIC, the same for all processes of a machine.
#pragma once

#include <ctime>

#include <cstdint>

namespace weft::tools {

inline int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

inline double seconds_between(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-9;
}

}  // namespace weft::tools
