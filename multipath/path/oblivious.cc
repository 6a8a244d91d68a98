// SPDX-License-Identifier: Apache-2.0
// One step of the lap: counter xor mask, passing over what is not usable.
#include "multipath/path/oblivious.h"

#include <bit>

namespace weft {

ObliviousSelector::ObliviousSelector(const SelectorConfig& config)
    : paths_(static_cast<uint32_t>(config.paths)),
      lap_(std::bit_ceil(paths_)),
      random_(config.seed) {
  mask_ = static_cast<uint32_t>(random_.below(lap_));
}

PathIndex ObliviousSelector::next(const Turn& turn) {
  // Two laps see every path at least once whatever the mask did in between.
  for (uint32_t tries = 0; tries < 2 * lap_; ++tries) {
    const uint32_t path = counter_ ^ mask_;
    if (++counter_ == lap_) {
      counter_ = 0;
      mask_ = static_cast<uint32_t>(random_.below(lap_));
    }
    if (path < paths_ && turn.usable.test(static_cast<PathIndex>(path)))
      return static_cast<PathIndex>(path);
  }
  return 0;
}

}  // namespace weft
