// SPDX-License-Identifier: Apache-2.0
// A small deterministic generator (xoshiro256**, Blackman and Vigna 2018, seeded by splitmix64).
//
// The core takes its randomness from one of these, seeded by whoever made it: by getrandom(2) in
// production, by a number on the command line in tests. Not for secrets: cookies come from the
// system.
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }

  uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); 0 when bound is 0. The bias is below 2^-32 for the bounds used here.
  uint64_t below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;  // not ISO C++, which -Wpedantic would say
    return static_cast<uint64_t>((Wide{next()} * bound) >> 64);
  }

  bool chance(double probability) {
    return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
  }

 private:
  uint64_t state_[4];
};

}  // namespace weft
