// SPDX-License-Identifier: Apache-2.0
// The selectors by name.
#include "multipath/path/selector.h"

#include "multipath/path/oblivious.h"

namespace weft {

std::unique_ptr<Selector> make_selector(std::string_view name, int paths, uint64_t seed) {
  if (name == "oblivious") return std::make_unique<ObliviousSelector>(paths, seed);
  return nullptr;
}

}  // namespace weft
