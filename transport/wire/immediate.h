// SPDX-License-Identifier: Apache-2.0
// The 32 bits of immediate data that name a write on a placing fabric. From the highest bit down:
//
//   short  1 0 | flow 14 | part 3 | number 9 | spare 4   a message of one segment; its size is the
//                                                        write's
//   probe  1 1 | sequence 16 | spare 14                  a write of no bytes: does this path work
//   long   0 | slot 12 | generation 3 | index 16         a segment of a message that has a record
//
// A flow has at most 256 messages unacknowledged, so 9 bits of number are unambiguous; a message
// has at most 2^14 segments outstanding, so 16 bits of index are. Both are widened against what the
// receiver expects.
#pragma once

#include <cstdint>

namespace weft::wire {

inline constexpr uint32_t kMaxImmediateFlow = 1u << 14;
inline constexpr uint32_t kImmediateSlots = 1u << 12;
inline constexpr uint32_t kImmediateGenerations = 1u << 3;
inline constexpr uint32_t kImmediateNumbers = 1u << 9;

enum class ImmediateKind : uint8_t { kShort, kProbe, kLong };

struct Immediate {
  ImmediateKind kind = ImmediateKind::kLong;
  uint32_t flow = 0;       // short
  uint8_t part = 0;        // short
  uint32_t number = 0;     // short: modulo 2^9
  uint32_t sequence = 0;   // probe: modulo 2^16
  uint32_t slot = 0;       // long
  uint8_t generation = 0;  // long
  uint32_t index = 0;      // long: modulo 2^16
};

constexpr uint32_t immediate_short(uint32_t flow, uint8_t part, uint32_t number) {
  return 0x80000000u | (flow & 0x3fff) << 16 | (part & 7u) << 13 | (number & 0x1ff) << 4;
}
constexpr uint32_t immediate_probe(uint32_t sequence) {
  return 0xc0000000u | (sequence & 0xffff) << 14;
}
constexpr uint32_t immediate_long(uint32_t slot, uint8_t generation, uint32_t index) {
  return (slot & 0xfff) << 19 | (generation & 7u) << 16 | (index & 0xffff);
}

constexpr Immediate decode_immediate(uint32_t bits) {
  Immediate out;
  if ((bits & 0xc0000000u) == 0xc0000000u) {
    out.kind = ImmediateKind::kProbe;
    out.sequence = bits >> 14 & 0xffff;
  } else if (bits & 0x80000000u) {
    out.kind = ImmediateKind::kShort;
    out.flow = bits >> 16 & 0x3fff;
    out.part = static_cast<uint8_t>(bits >> 13 & 7);
    out.number = bits >> 4 & 0x1ff;
  } else {
    out.slot = bits >> 19 & 0xfff;
    out.generation = static_cast<uint8_t>(bits >> 16 & 7);
    out.index = bits & 0xffff;
  }
  return out;
}

// The value nearest to `expected` whose low `bits` bits are `low`.
constexpr uint64_t widen(uint64_t low, int bits, uint64_t expected) {
  const uint64_t span = uint64_t{1} << bits;
  const uint64_t mask = span - 1;
  uint64_t value = (expected & ~mask) | (low & mask);
  if (value > expected && value - expected > span / 2 && value >= span) value -= span;
  if (value < expected && expected - value > span / 2) value += span;
  return value;
}

}  // namespace weft::wire
