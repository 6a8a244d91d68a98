// SPDX-License-Identifier: Apache-2.0
// What memory is to a fabric: where it lives, how bytes get into it, when they are visible there.
//
// A fabric that places by itself only registers memory; a datagram fabric copies through this
// interface, which knows host memory today and which gpu/ implements for device memory. The
// endpoint hands one Memory in per process; its methods may be called by any engine's thread and
// never block on a peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/base/units.h"

namespace weft {

enum class MemoryKind : uint8_t { kHost, kDevice, kDmaBuf };

// A registration as the plugin was asked for it. `dma_buf` is a descriptor that the owner of the
// region keeps open, or -1.
struct MemoryRange {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  int dma_buf = -1;
  uint64_t dma_buf_offset = 0;
};

// A batch member of place(): `destination` null means "nowhere".
struct Placement {
  std::byte* destination = nullptr;
  const std::byte* source = nullptr;
  uint32_t bytes = 0;
};

// Copies into host memory that a GPU or another core may be polling (LL, LL128): front to back, in
// words of at least 8 aligned bytes, and of each 128-byte line of the message the last word after
// all others (design, invariant 8). `bytes` counts from a line boundary of the message.
inline void copy_lines(std::byte* to, const std::byte* from, size_t bytes) {
  using Vector [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = long long;
  while (bytes >= kLineBytes) {
    Vector* d =
        reinterpret_cast<Vector*>(to);  // not auto: g++ deduces the type without its alignment
    const Vector* s = reinterpret_cast<const Vector*>(from);
    Vector v0 = s[0], v1 = s[1], v2 = s[2], v3 = s[3], v4 = s[4], v5 = s[5], v6 = s[6], v7 = s[7];
    d[0] = v0, d[1] = v1, d[2] = v2, d[3] = v3, d[4] = v4, d[5] = v5, d[6] = v6;
    asm volatile("" ::
                     : "memory");  // the line's last word stays last; x86 keeps the order of stores
    d[7] = v7;
    asm volatile("" ::: "memory");
    to += kLineBytes, from += kLineBytes, bytes -= kLineBytes;
  }
  for (; bytes >= 8; to += 8, from += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, from, 8);
    std::memcpy(to, &word, 8);
    asm volatile("" ::: "memory");
  }
  if (bytes != 0) std::memcpy(to, from, bytes);
}

class Memory {
 public:
  virtual ~Memory() = default;
  // Copies every member that has a destination; returns when all bytes are where they belong.
  virtual void place(const Placement* batch, size_t count) = 0;
};

class HostMemory final : public Memory {
 public:
  void place(const Placement* batch, size_t count) override {
    for (size_t i = 0; i < count; ++i) {
      if (batch[i].destination) copy_lines(batch[i].destination, batch[i].source, batch[i].bytes);
    }
  }
};

}  // namespace weft
