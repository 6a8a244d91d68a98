// SPDX-License-Identifier: Apache-2.0
// The laws by name.
#include "multipath/congestion/law.h"

#include "multipath/congestion/cubic.h"
#include "multipath/congestion/dctcp.h"
#include "multipath/congestion/fixed.h"
#include "multipath/congestion/median.h"
#include "multipath/congestion/nscc.h"
#include "multipath/congestion/swift.h"
#include "multipath/congestion/timely.h"

namespace weft {

std::unique_ptr<Law> make_law(std::string_view name, const LawConfig& config, const Pipe& pipe) {
  if (name == "nscc") return std::make_unique<NsccLaw>(config, pipe);
  if (name == "mnscc")
    return std::make_unique<MedianLaw>("mnscc", std::make_unique<NsccLaw>(config, pipe), pipe);
  if (name == "swift") return std::make_unique<SwiftLaw>(config, pipe);
  if (name == "timely") return std::make_unique<TimelyLaw>(config, pipe);
  if (name == "dctcp") return std::make_unique<DctcpLaw>(config, pipe);
  if (name == "cubic") return std::make_unique<CubicLaw>(config, pipe);
  if (name == "fixed") return std::make_unique<FixedLaw>(config);
  return nullptr;
}

}  // namespace weft
