// SPDX-License-Identifier: Apache-2.0
// The 32 bits of immediate data, and widening what they cut off.
#include "transport/wire/immediate.h"

#include <gtest/gtest.h>

#include "transport/base/random.h"

namespace weft::wire {
namespace {

TEST(Immediate, LaysItsBitsOutAsSaid) {
  EXPECT_EQ(immediate_short(kMaxImmediateFlow - 1, 0, 0), 0xbfff0000u);
  EXPECT_EQ(immediate_short(0, 7, 0), 0x8000e000u);
  EXPECT_EQ(immediate_short(0, 0, 511), 0x80001ff0u);
  EXPECT_EQ(immediate_probe(0xffff), 0xffffc000u);
  EXPECT_EQ(immediate_probe(0), 0xc0000000u);
  EXPECT_EQ(immediate_long(kImmediateSlots - 1, 0, 0), 0x7ff80000u);
  EXPECT_EQ(immediate_long(0, 7, 0), 0x00070000u);
  EXPECT_EQ(immediate_long(0, 0, 0xffff), 0x0000ffffu);
}

TEST(Immediate, RoundTripsModuloItsWidths) {
  Random r(1);
  for (int n = 0; n < 100000; ++n) {
    const auto a = static_cast<uint32_t>(r.next()), b = static_cast<uint32_t>(r.next());
    const auto c = static_cast<uint8_t>(r.next());
    Immediate i = decode_immediate(immediate_short(a, c, b));
    ASSERT_EQ(i.kind, ImmediateKind::kShort);
    ASSERT_EQ(i.flow, a % kMaxImmediateFlow);
    ASSERT_EQ(i.part, c % 8);
    ASSERT_EQ(i.number, b % kImmediateNumbers);
    i = decode_immediate(immediate_probe(a));
    ASSERT_EQ(i.kind, ImmediateKind::kProbe);
    ASSERT_EQ(i.sequence, a % 65536);
    i = decode_immediate(immediate_long(a, c, b));
    ASSERT_EQ(i.kind, ImmediateKind::kLong);
    ASSERT_EQ(i.slot, a % kImmediateSlots);
    ASSERT_EQ(i.generation, c % kImmediateGenerations);
    ASSERT_EQ(i.index, b % 65536);
  }
}

// Any 32 bits decode to something in range: nothing more can be checked about them.
TEST(Immediate, EveryPatternDecodesInRange) {
  Random r(2);
  for (int n = 0; n < 100000; ++n) {
    const Immediate i = decode_immediate(static_cast<uint32_t>(r.next()));
    ASSERT_LT(i.flow, kMaxImmediateFlow);
    ASSERT_LT(i.part, 8);
    ASSERT_LT(i.number, kImmediateNumbers);
    ASSERT_LT(i.sequence, 65536u);
    ASSERT_LT(i.slot, kImmediateSlots);
    ASSERT_LT(i.generation, kImmediateGenerations);
    ASSERT_LT(i.index, 65536u);
  }
}

TEST(Widen, FindsTheNearestValue) {
  EXPECT_EQ(widen(0xff, 8, 0x100), 0xffu);
  EXPECT_EQ(widen(0x00, 8, 0xff), 0x100u);
  EXPECT_EQ(widen(0x7f, 8, 0x100), 0x17fu);
  EXPECT_EQ(widen(0xff, 8, 0x00), 0xffu) << "there is nothing below 0";
  EXPECT_EQ(widen(0x1234, 9, 0), 0x034u) << "bits above are ignored";
}

TEST(Widen, RecoversWhatIsWithinHalfTheSpan) {
  Random r(3);
  for (int bits : {3, 9, 16, 32}) {
    const uint64_t half = uint64_t{1} << (bits - 1);
    for (int n = 0; n < 100000; ++n) {
      const uint64_t expected = r.next() >> (1 + r.below(63));
      const uint64_t down = std::min(expected, half - 1);
      const uint64_t truth = expected - down + r.below(down + half);
      ASSERT_EQ(widen(truth & ((half << 1) - 1), bits, expected), truth)
          << bits << " bits, expected " << expected;
    }
  }
}

}  // namespace
}  // namespace weft::wire
