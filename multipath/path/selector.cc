// SPDX-License-Identifier: Apache-2.0
// The selectors by name.
#include "multipath/path/selector.h"

#include "multipath/path/bitmap.h"
#include "multipath/path/flowlet.h"
#include "multipath/path/mixed.h"
#include "multipath/path/oblivious.h"
#include "multipath/path/p2c.h"
#include "multipath/path/plb.h"
#include "multipath/path/reps.h"
#include "multipath/path/single.h"

namespace weft {

std::unique_ptr<Selector> make_selector(std::string_view name, const SelectorConfig& config) {
  if (name == "reps") return std::make_unique<RepsSelector>(config);
  if (name == "mixed") return std::make_unique<MixedSelector>(config);
  if (name == "bitmap") return std::make_unique<BitmapSelector>(config);
  if (name == "oblivious") return std::make_unique<ObliviousSelector>(config);
  if (name == "p2c") return std::make_unique<P2cSelector>(config);
  if (name == "plb") return std::make_unique<PlbSelector>(config);
  if (name == "flowlet") return std::make_unique<FlowletSelector>(config);
  if (name == "single") return std::make_unique<SingleSelector>(config);
  return nullptr;
}

}  // namespace weft
