// SPDX-License-Identifier: Apache-2.0
//
// The process's monotonic clock, read in one place.
//
// The core never calls this: engines, endpoints and tools read it and hand the Time in. The clock
// is CLOCK_MONOTONIC: nanoseconds since some moment before the process began, never stepped back,
// the same for all threads and processes of a machine. A read is no system call (vDSO).
// Threading: any. What may fail: nothing; POSIX requires the clock on every system we run on.
#pragma once

#include "transport/base/units.h"

namespace weft {

Time monotonic_now();

}  // namespace weft
