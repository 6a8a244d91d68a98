// SPDX-License-Identifier: Apache-2.0
// BitWindow against a std::set that is too simple to be wrong.
#include "transport/base/bit_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "transport/base/random.h"

namespace weft {
namespace {

// The definition: a base, and the indices set at or above it.
struct Model {
  explicit Model(uint64_t window) : bits(window) {}
  uint64_t bits, base = 0;
  std::set<uint64_t> above;

  bool test(uint64_t i) const { return i < base || above.count(i) != 0; }
  bool set(uint64_t i) { return i >= base && i < base + bits && above.insert(i).second; }
  void clear(uint64_t i) { above.erase(i); }
  void slide() {
    while (above.erase(base) != 0) ++base;
  }
  void advance(uint64_t to) {
    if (to <= base) return;
    base = to;
    above.erase(above.begin(), above.lower_bound(to));
  }
  // For index >= base.
  uint64_t bits_from(uint64_t index) const {
    uint64_t out = 0;
    for (auto i = above.lower_bound(index); i != above.end() && *i < index + 64; ++i) {
      out |= uint64_t{1} << (*i - index);
    }
    return out;
  }
};

template <size_t kBits>
void compare_with_model(uint64_t seed, int operations) {
  Random random(seed);
  BitWindow<kBits> window;
  Model model(kBits);
  for (int n = 0; n < operations; ++n) {
    const uint64_t around = model.base + random.below(kBits + kBits / 8);
    switch (random.below(12)) {
      case 0: window.slide(), model.slide(); break;
      case 1: {
        if (!random.chance(0.1)) break;
        const uint64_t to = model.base + random.below(random.chance(0.2) ? 3 * kBits : kBits / 8);
        window.advance(to), model.advance(to);
        break;
      }
      case 2: window.clear(around), model.clear(around); break;
      case 3: {  // a run, as arrivals are
        for (uint64_t i = model.base, e = i + random.below(90); i < e; ++i) {
          ASSERT_EQ(window.set(i), model.set(i)) << "seed " << seed << " operation " << n;
        }
        break;
      }
      case 4: {
        const uint64_t below = model.base - std::min(model.base, random.below(100));
        ASSERT_EQ(window.set(below), model.set(below));
        ASSERT_EQ(window.test(below), model.test(below));
        break;
      }
      default: ASSERT_EQ(window.set(around), model.set(around)) << "seed " << seed; break;
    }
    ASSERT_EQ(window.base(), model.base) << "seed " << seed << " operation " << n;
    const uint64_t at = model.base + random.below(kBits + 70);
    ASSERT_EQ(window.test(at), model.test(at)) << "seed " << seed << " operation " << n;
    ASSERT_EQ(window.bits_from(at), model.bits_from(at))
        << "seed " << seed << " operation " << n << " index " << at << " base " << model.base;
  }
}

TEST(BitWindow, DoesWhatASetDoes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    compare_with_model<64>(seed, 5000);
    compare_with_model<128>(seed, 5000);
    compare_with_model<512>(seed, 5000);
    compare_with_model<16384>(seed, 2000);
  }
}

TEST(BitWindow, CoversExactlyItsSize) {
  BitWindow<128> w;
  w.reset(1000);
  EXPECT_FALSE(w.covers(999));
  EXPECT_TRUE(w.covers(1000));
  EXPECT_TRUE(w.covers(1127));
  EXPECT_FALSE(w.covers(1128));
  EXPECT_TRUE(w.test(999)) << "all below the base is in the set";
  EXPECT_FALSE(w.set(1128));
  EXPECT_TRUE(w.set(1127));
  EXPECT_FALSE(w.set(1127)) << "not new";
  EXPECT_FALSE(w.test(1127 - 128 + 256)) << "the same bit, another index";
}

TEST(BitWindow, BitsFromReadsAcrossTheWrapAndStopsAtTheEnd) {
  BitWindow<128> w;
  w.reset(100);  // bits live at index mod 128: 100..127, then 0..99
  for (uint64_t i : {100, 127, 128, 163, 227}) w.set(i);
  EXPECT_EQ(w.bits_from(100), 1u | uint64_t{1} << 27 | uint64_t{1} << 28 | uint64_t{1} << 63);
  EXPECT_EQ(w.bits_from(164), uint64_t{1} << 63);
  EXPECT_EQ(w.bits_from(200), uint64_t{1} << 27) << "bits past the window would be those of 100";
  EXPECT_EQ(w.bits_from(227), 1u);
  EXPECT_EQ(w.bits_from(228), 0u);
  EXPECT_EQ(w.bits_from(100000), 0u);
}

TEST(BitWindow, SlideStopsAfterAFullWindow) {
  BitWindow<64> w;
  for (uint64_t i = 0; i < 64; ++i) EXPECT_TRUE(w.set(i));
  w.slide();
  EXPECT_EQ(w.base(), 64u);
  EXPECT_EQ(w.bits_from(64), 0u);
}

TEST(BitWindow, WorksCloseToTheEndOfItsRange) {
  BitWindow<64> w;
  const uint64_t high = UINT64_MAX - 200;
  w.reset(high);
  EXPECT_TRUE(w.set(high));
  EXPECT_TRUE(w.set(high + 63));
  w.slide();
  EXPECT_EQ(w.base(), high + 1);
  EXPECT_EQ(w.bits_from(high + 1), uint64_t{1} << 62);
}

}  // namespace
}  // namespace weft
