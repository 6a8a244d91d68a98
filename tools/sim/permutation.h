// SPDX-License-Identifier: Apache-2.0
// Who sends to whom: the permutations that the published reference figures were taken with. They
// come of Python's `random.Random(seed).shuffle`, tried again until nobody sends to itself, so its
// generator (MT19937, Matsumoto and Nishimura 1998) and its way of drawing are repeated here.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::simtool {

/// `result[i]` is whom host i sends to; hosts >= 2.
std::vector<uint32_t> permutation(uint32_t hosts, uint32_t seed);

}  // namespace weft::simtool
