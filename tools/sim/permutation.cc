// SPDX-License-Identifier: Apache-2.0
// A generator seeded as Python does it, and its shuffle; see permutation.h.
#include "tools/sim/permutation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace weft::simtool {
namespace {

class Mt19937 {
 public:
  // The reference's init_by_array with a key of one word.
  explicit Mt19937(uint32_t key) {
    state_[0] = 19650218;
    for (uint32_t i = 1; i < kWords; ++i)
      state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    uint32_t i = 1;
    for (uint32_t k = 0; k < kWords; ++k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525u)) + key;
      if (++i >= kWords) state_[0] = state_[kWords - 1], i = 1;
    }
    for (uint32_t k = 0; k < kWords - 1; ++k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941u)) - i;
      if (++i >= kWords) state_[0] = state_[kWords - 1], i = 1;
    }
    state_[0] = 0x80000000u;
  }

  uint32_t next() {
    if (at_ == kWords) refill();
    uint32_t y = state_[at_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  // Uniform below `bound` >= 1, as Python draws it: as few bits as hold it, until they fit.
  uint32_t below(uint32_t bound) {
    const int bits = std::bit_width(bound);
    for (;;) {
      const uint32_t value = next() >> (32 - bits);
      if (value < bound) return value;
    }
  }

 private:
  static constexpr uint32_t kWords = 624, kMiddle = 397;

  void refill() {
    for (uint32_t k = 0; k < kWords; ++k) {
      const uint32_t y = (state_[k] & 0x80000000u) | (state_[(k + 1) % kWords] & 0x7fffffffu);
      state_[k] = state_[(k + kMiddle) % kWords] ^ (y >> 1) ^ ((y & 1) != 0 ? 0x9908b0dfu : 0);
    }
    at_ = 0;
  }

  std::array<uint32_t, kWords> state_{};
  uint32_t at_ = kWords;
};

}  // namespace

std::vector<uint32_t> permutation(uint32_t hosts, uint32_t seed) {
  Mt19937 random(seed);
  std::vector<uint32_t> order(hosts);
  for (;;) {
    std::iota(order.begin(), order.end(), 0u);
    for (uint32_t i = hosts - 1; i >= 1; --i) std::swap(order[i], order[random.below(i + 1)]);
    bool to_itself = false;
    for (uint32_t i = 0; i < hosts; ++i) to_itself = to_itself || order[i] == i;
    if (!to_itself) return order;
  }
}

}  // namespace weft::simtool
