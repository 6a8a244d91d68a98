// SPDX-License-Identifier: Apache-2.0
// The one place that reads the clock.
#include "transport/system/clock.h"

#include <ctime>

namespace weft {

Time monotonic_now() {
  timespec now{};
  // Fails only for a bad clock id or pointer, and neither can be.
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time{static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec};
}

}  // namespace weft
