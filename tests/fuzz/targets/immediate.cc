// SPDX-License-Identifier: Apache-2.0
// Immediate data: every 32 bits mean one thing, and numbers are widened to the nearest that they
// can be.
#include "transport/wire/immediate.h"
#include "tests/fuzz/fuzz.h"

namespace weft::fuzz {
namespace {

using namespace wire;

uint32_t again(const Immediate& i) {
  switch (i.kind) {
    case ImmediateKind::kShort: return immediate_short(i.flow, i.part, i.number);
    case ImmediateKind::kProbe: return immediate_probe(i.sequence);
    case ImmediateKind::kLong: break;
  }
  return immediate_long(i.slot, i.generation, i.index);
}

uint32_t spare(ImmediateKind kind) {
  return kind == ImmediateKind::kShort ? 0xfu : kind == ImmediateKind::kProbe ? 0x3fffu : 0u;
}

void check_widen(uint64_t low, int bits, uint64_t expected) {
  const uint64_t span = uint64_t{1} << bits;
  if (expected > UINT64_MAX - span) return;  // a count that no flow reaches
  const uint64_t wide = widen(low, bits, expected);
  promise((wide & (span - 1)) == (low & (span - 1)), "widening keeps the bits that were sent");
  const uint64_t distance = wide > expected ? wide - expected : expected - wide;
  promise(distance <= span / 2 || wide < span, "widening goes to the nearest");
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  wire::Reader r(input);
  const auto bits = r.get<uint32_t>();
  const auto expected = r.get<uint64_t>();
  if (r.failed()) return false;
  const Immediate i = decode_immediate(bits);
  promise(again(i) == (bits & ~spare(i.kind)), "immediate data encodes back to its bits");
  promise(i.flow < kMaxImmediateFlow && i.part < 8 && i.number < kImmediateNumbers,
          "a short message's names are in range");
  promise(i.slot < kImmediateSlots && i.generation < kImmediateGenerations && i.index < 65536,
          "a long message's names are in range");
  check_widen(bits, 9, expected);
  check_widen(bits, 16, expected);
  return true;
}

}  // namespace weft::fuzz
