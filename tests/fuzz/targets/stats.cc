// SPDX-License-Identifier: Apache-2.0
// The lines that any plugin, not ours alone, may leave in the file that WEFT_STATS names.
#include "tests/fuzz/fuzz.h"
#include "tools/common/report.h"

namespace weft::fuzz {

bool feed(std::span<const std::byte> input) {
  tools::PluginFigures figures;
  const std::string why = figures.add(std::string(text_of(input)));
  promise(why.size() < 500, "a complaint is bounded");
  promise(figures.paths_used <= figures.paths.size(), "paths that were used are among the paths");
  return why.empty() && figures.any;
}

}  // namespace weft::fuzz
