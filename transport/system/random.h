// SPDX-License-Identifier: Apache-2.0
//
// Random bytes from the kernel: cookies, incarnations, and the seeds that the core is handed.
//
// Straight from getrandom(2). Not std::random_device, which reports failure by throwing and brings
// in arc4random (glibc 2.36), above what the plugin may ask of the C library.
// Threading: any. What may fail: a kernel that has not gathered its first randomness (early boot)
// is waited for, at most five seconds, then kUnavailable; anything else is kSystem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/base/result.h"

namespace weft {

// Fills all of `bytes`, or fails and leaves them unspecified.
Status fill_random(std::span<std::byte> bytes);

// 64 random bits.
Result<uint64_t> random_u64();

}  // namespace weft
