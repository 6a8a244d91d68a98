// SPDX-License-Identifier: Apache-2.0
// Poisoning and unmapping what no registration covers; see freed_memory.h.
#include "tools/ncclnet/freed_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "tools/common/pattern.h"

namespace weft::ncclnet {
namespace {

constexpr uintptr_t kPage = 4096;

// The whole pages of a range may be protected.
void protect(unsigned char* from, unsigned char* to, int rights) {
  const uintptr_t start = (reinterpret_cast<uintptr_t>(from) + kPage - 1) & ~(kPage - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(to) & ~(kPage - 1);
  if (start >= end) return;
  ::mprotect(reinterpret_cast<void*>(start), end - start, rights);
}

}  // namespace

void FreedMemory::registered(unsigned char* at, size_t bytes, const std::string& name) {
  if (keep_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto again = std::remove_if(freed_.begin(), freed_.end(), [&](const Range& range) {
    if (range.to <= at || at + bytes <= range.from) return false;
    if (unmap_) protect(range.from, range.to, PROT_READ | PROT_WRITE);
    return true;
  });
  freed_.erase(again, freed_.end());
  live_.push_back({at, at + bytes, name});
}

void FreedMemory::deregistered(unsigned char* at, size_t bytes) {
  if (keep_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto mine = std::find_if(live_.begin(), live_.end(), [&](const Range& range) {
    return range.from == at && range.to == at + bytes;
  });
  if (mine == live_.end()) return;
  // What is left of it, from the front on, between those that are still registered.
  Range rest = *mine;
  live_.erase(mine);
  while (rest.from < rest.to) {
    unsigned char* covered_to = rest.from;  // by what begins at or before rest.from
    unsigned char* next = rest.to;          // where the next one begins
    for (const Range& live : live_) {
      if (live.from <= rest.from)
        covered_to = std::max(covered_to, live.to);
      else
        next = std::min(next, live.from);
    }
    if (covered_to > rest.from) {
      rest.from = std::min(covered_to, rest.to);
      continue;
    }
    give_back({rest.from, next, rest.name});
    rest.from = next;
  }
}

void FreedMemory::give_back(Range range) {
  tools::fill_guard(range.from, static_cast<size_t>(range.to - range.from));
  if (unmap_) protect(range.from, range.to, PROT_NONE);
  freed_.push_back(std::move(range));
}

std::string FreedMemory::written() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Range& range : freed_) {
    if (unmap_) protect(range.from, range.to, PROT_READ | PROT_WRITE);
    const auto bytes = static_cast<size_t>(range.to - range.from);
    const auto wrong = tools::check_guard(range.from, bytes);
    if (unmap_) protect(range.from, range.to, PROT_NONE);
    if (!wrong) continue;
    return fmt::format("memory of {} was written after its deregMr: the first is byte {} of {}",
                       range.name, *wrong, bytes);
  }
  return {};
}

}  // namespace weft::ncclnet
