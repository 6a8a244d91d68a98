// SPDX-License-Identifier: Apache-2.0
// The unit of growth.
#include "multipath/congestion/window.h"

#include <cmath>

namespace weft {

double growth_unit(const Pipe& pipe) {
  return std::sqrt(static_cast<double>(pipe.capacity()) * kReferenceWindow);
}

}  // namespace weft
