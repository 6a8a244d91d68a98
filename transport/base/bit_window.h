// SPDX-License-Identifier: Apache-2.0
// A set of indices above a moving base, in a fixed number of bits: which segments have arrived,
// which packets were seen. Everything below base() is in the set; nothing at or past base() + kBits
// can be.
//
// Bits live at index mod kBits, so sliding the base moves no memory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft {

template <size_t kBits>
class BitWindow {
  static_assert(kBits % 64 == 0 && (kBits & (kBits - 1)) == 0);

 public:
  static constexpr size_t kSize = kBits;

  uint64_t base() const { return base_; }
  bool covers(uint64_t index) const { return index - base_ < kBits; }

  bool test(uint64_t index) const {
    if (index < base_) return true;
    return covers(index) && (words_[word(index)] & bit(index)) != 0;
  }

  // Returns whether the index is new. An index past the window is refused: false.
  bool set(uint64_t index) {
    if (index < base_ || !covers(index)) return false;
    uint64_t& w = words_[word(index)];
    if (w & bit(index)) return false;
    w |= bit(index);
    return true;
  }

  void clear(uint64_t index) {
    if (index >= base_ && covers(index)) words_[word(index)] &= ~bit(index);
  }

  // Whether the index is held as a bit, not merely below the base.
  bool holds(uint64_t index) const {
    return index >= base_ && covers(index) && (words_[word(index)] & bit(index)) != 0;
  }

  // The lowest index held as a bit; base() + kBits when there is none.
  uint64_t first() const {
    for (uint64_t at = base_; at < base_ + kBits; at += 64) {
      const uint64_t bits = bits_from(at);
      if (bits != 0) return at + static_cast<uint64_t>(std::countr_zero(bits));
    }
    return base_ + kBits;
  }

  // Moves the base over every index that is set, emptying the bits it passes.
  void slide() {
    while (words_[word(base_)] & bit(base_)) {
      words_[word(base_)] &= ~bit(base_);
      ++base_;
    }
  }

  // Moves the base to `to` whatever was set below it.
  void advance(uint64_t to) {
    if (to <= base_) return;
    if (to - base_ >= kBits) {
      words_.fill(0);
    } else {
      for (uint64_t i = base_; i < to; ++i) words_[word(i)] &= ~bit(i);
    }
    base_ = to;
  }

  // 64 bits from `index` on, bit 0 being `index` itself; bits past the window read 0.
  uint64_t bits_from(uint64_t index) const {
    uint64_t out = 0;
    const uint64_t shift = index % 64;
    const uint64_t low = words_[word(index)];
    const uint64_t high = words_[word(index + 64)];
    out = shift == 0 ? low : (low >> shift) | (high << (64 - shift));
    const uint64_t end = base_ + kBits;
    if (index >= end) return 0;
    const uint64_t room = end - index;
    return room >= 64 ? out : out & ((uint64_t{1} << room) - 1);
  }

  void reset(uint64_t base = 0) {
    words_.fill(0);
    base_ = base;
  }

 private:
  static size_t word(uint64_t index) { return (index / 64) % (kBits / 64); }
  static uint64_t bit(uint64_t index) { return uint64_t{1} << (index % 64); }

  std::array<uint64_t, kBits / 64> words_{};
  uint64_t base_ = 0;
};

}  // namespace weft
