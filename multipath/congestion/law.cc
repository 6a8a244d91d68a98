// SPDX-License-Identifier: Apache-2.0
// The laws by name.
#include "multipath/congestion/law.h"

#include "multipath/congestion/fixed.h"

namespace weft {

std::unique_ptr<Law> make_law(std::string_view name, const LawConfig& config) {
  if (name == "fixed") return std::make_unique<FixedLaw>(config);
  return nullptr;
}

}  // namespace weft
