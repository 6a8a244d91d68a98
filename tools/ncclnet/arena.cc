// SPDX-License-Identifier: Apache-2.0
// Merging ranges into arenas; see arena.h.
#include "tools/ncclnet/arena.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace weft::ncclnet {
namespace {

constexpr uint64_t kPage = 4096;
// Room behind the last region, so that a plugin that writes past it is caught, not crashed.
constexpr uint64_t kSpare = kPage;
constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 36;

}  // namespace

void Arenas::add(uint64_t base, uint64_t bytes) { ranges_.emplace_back(base, base + bytes); }

std::string Arenas::build() {
  std::sort(ranges_.begin(), ranges_.end());
  for (const auto& [from, to] : ranges_) {
    const uint64_t start = from & ~(kPage - 1);
    if (!arenas_.empty() && start <= arenas_.back().to) {
      arenas_.back().to = std::max(arenas_.back().to, to);
    } else {
      arenas_.push_back({start, to, {}, {}});
    }
  }
  for (Arena& arena : arenas_) {
    const uint64_t bytes = arena.to - arena.from + kSpare;
    if (bytes > kMaxArenaBytes) return fmt::format("a region of {} bytes is too large", bytes);
    arena.fd = tools::make_memory_file("replay", bytes);
    if (arena.fd) arena.memory = tools::Mapping(arena.fd.get(), bytes);
    if (arena.memory.data() == nullptr) {
      return fmt::format("no memory for a region of {} bytes: {}", bytes, std::strerror(errno));
    }
  }
  return {};
}

unsigned char* Arenas::at(uint64_t address) const {
  const auto after =
      std::upper_bound(arenas_.begin(), arenas_.end(), address,
                       [](uint64_t a, const Arena& arena) { return a < arena.from; });
  const Arena& arena = *std::prev(after);
  return static_cast<unsigned char*>(arena.memory.data()) + (address - arena.from);
}

}  // namespace weft::ncclnet
