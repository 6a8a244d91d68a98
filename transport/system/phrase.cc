// SPDX-License-Identifier: Apache-2.0
// fmt's machinery, compiled once for all who only want words.
#include "transport/system/phrase.h"

#include <fmt/format.h>

namespace weft::detail {

std::string format_phrase(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}

}  // namespace weft::detail
