// SPDX-License-Identifier: Apache-2.0
// Numbers of command lines and traces: the whole text is one, within its bounds, or it is refused.
#include <string>

#include "tests/fuzz/fuzz.h"
#include "tools/common/numbers.h"

namespace weft::fuzz {
namespace {

template <class T>
void check_integer(std::string_view text) {
  const auto value = tools::parse_integer<T>(text);
  if (!value) return;
  promise(text.find_first_not_of("-0123456789") == std::string_view::npos,
          "an integer is digits and a sign");
  promise(tools::parse_integer<T>(std::to_string(*value)) == value, "and can be said again");
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  const std::string_view text = text_of(input);
  check_integer<int>(text);
  check_integer<int64_t>(text);
  check_integer<uint32_t>(text);
  check_integer<uint64_t>(text);
  const auto decimal = tools::parse_decimal(text, -1.5, 1e6);
  promise(!decimal || (*decimal >= -1.5 && *decimal <= 1e6), "a decimal is within its bounds");
  const auto size = tools::parse_size(text);
  if (size) {
    promise(text.front() >= '0' && text.front() <= '9', "a size begins with a digit");
    promise(tools::parse_size(std::to_string(*size)) == size, "and can be said in bytes");
  }
  return size.has_value();
}

}  // namespace weft::fuzz
