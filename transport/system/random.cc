// SPDX-License-Identifier: Apache-2.0
// Seeds and secrets by getrandom(2), which is asked in a loop and may fail.
#include "transport/system/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

namespace weft {
namespace {

constexpr int kMaxWaits = 50;
constexpr long kWaitNs = 100'000'000;
constexpr int kMaxInterruptions = 1000;

std::string describe(int error) { return std::string(strerrordesc_np(error)); }

}  // namespace

Status fill_random(std::span<std::byte> bytes) {
  int waits = 0;
  int interruptions = 0;
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
      continue;
    }
    const int error = got < 0 ? errno : EIO;
    if (error == EINTR && ++interruptions < kMaxInterruptions) continue;
    if (error == EAGAIN) {
      if (++waits > kMaxWaits) {
        return {Code::kUnavailable,
                "the kernel has no randomness yet (getrandom: EAGAIN for 5 s); is this machine "
                "still booting?"};
      }
      const timespec pause{0, kWaitNs};
      nanosleep(&pause, nullptr);
      continue;
    }
    return {Code::kSystem, "getrandom failed: " + describe(error)};
  }
  return {};
}

Result<uint64_t> random_u64() {
  uint64_t value = 0;
  if (Status status = fill_random(std::as_writable_bytes(std::span(&value, 1))); !status.ok()) {
    return status;
  }
  return value;
}

}  // namespace weft
