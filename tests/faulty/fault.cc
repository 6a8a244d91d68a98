// SPDX-License-Identifier: Apache-2.0
// When a fault strikes; see fault.h. Messages are counted by whichever threads move them.
#include "tests/faulty/fault.h"

#include <atomic>
#include <cstdlib>

namespace weft::faulty {
namespace {

constexpr uint64_t kDefaultAt = 8;

std::atomic<uint64_t> messages{0};
std::atomic<bool> struck{false};

uint64_t strikes_at() {
  static const uint64_t at = [] {
    const char* text = std::getenv("WEFT_FAULT_AT");
    const uint64_t value = text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
    return value > 0 ? value : kDefaultAt;
  }();
  return at;
}

}  // namespace

void count_message() { messages.fetch_add(1, std::memory_order_relaxed); }

bool armed() {
  return messages.load(std::memory_order_relaxed) >= strikes_at() &&
         !struck.load(std::memory_order_relaxed);
}

void strike() { struck.store(true, std::memory_order_relaxed); }

}  // namespace weft::faulty
