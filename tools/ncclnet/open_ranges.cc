// SPDX-License-Identifier: Apache-2.0
// Guards around the bytes that requests may touch; see open_ranges.h.
#include "tools/ncclnet/open_ranges.h"

#include <algorithm>

#include "tools/common/pattern.h"

namespace weft::ncclnet {
namespace {

constexpr size_t kSpoilBytes = 64;

}  // namespace

bool OpenRanges::free_of_others(const unsigned char* from, const unsigned char* to,
                                const Entry* self) const {
  return std::none_of(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.used && &e != self && from < e.to && e.from < to;
  });
}

int OpenRanges::open(unsigned char* at, size_t bytes, size_t guard_at, size_t guard_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto free =
      std::find_if(entries_.begin(), entries_.end(), [](const Entry& e) { return !e.used; });
  if (free == entries_.end()) free = entries_.insert(entries_.end(), Entry{});
  for (Entry& other : entries_) {
    if (other.used && other.guard != nullptr && at < other.guard + other.guard_bytes &&
        other.guard < at + bytes) {
      other.guard = nullptr;
    }
  }
  *free = {at, at + bytes, nullptr, guard_bytes, true};
  unsigned char* guard = at + guard_at;
  if (guard_bytes > 0 && free_of_others(guard, guard + guard_bytes, &*free)) {
    tools::fill_guard(guard, guard_bytes);
    free->guard = guard;
  }
  return static_cast<int>(free - entries_.begin());
}

std::optional<size_t> OpenRanges::close(int index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = entries_[static_cast<size_t>(index)];
  entry.used = false;
  if (entry.guard == nullptr) return std::nullopt;
  const auto wrong = tools::check_guard(entry.guard, entry.guard_bytes);
  if (!wrong) return std::nullopt;
  return static_cast<size_t>(entry.guard - entry.from) + *wrong;
}

void OpenRanges::close_and_spoil(int index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = entries_[static_cast<size_t>(index)];
  entry.used = false;
  if (!free_of_others(entry.from, entry.to, &entry)) return;
  const auto bytes = static_cast<size_t>(entry.to - entry.from);
  const size_t part = std::min(bytes, kSpoilBytes);
  tools::fill_guard(entry.from, part);
  tools::fill_guard(entry.to - part, part);
}

}  // namespace weft::ncclnet
