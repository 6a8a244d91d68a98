// SPDX-License-Identifier: Apache-2.0
// The waves of a race.
#include "multipath/endpoint/dial_race.h"

#include <algorithm>
#include <iterator>

namespace weft {
namespace {

// The last of each is repeated. Later waves are further apart than a peer is far away.
constexpr size_t kDials[] = {1, 3, 8, 16, DialRace::kLargestWave};
constexpr Duration kGaps[] = {milliseconds(20),  milliseconds(30),  milliseconds(50),
                              milliseconds(70),  milliseconds(90),  milliseconds(120),
                              milliseconds(160), milliseconds(220), milliseconds(300),
                              milliseconds(400), milliseconds(500)};

}  // namespace

void DialRace::begin(Time now) {
  wave_ = 0;
  next_ = now;
}

size_t DialRace::due(Time now) {
  if (!running() || now < next_) return 0;
  next_ = now + kGaps[std::min(wave_, std::size(kGaps) - 1)];
  return kDials[std::min(wave_++, std::size(kDials) - 1)];
}

}  // namespace weft
