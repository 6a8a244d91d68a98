// SPDX-License-Identifier: Apache-2.0
// Numbers from command lines and files: whole, in range, or refused. Never atoi.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::tools {

/// The whole of `text` as an integer; nothing when there is a sign too many, a rest, an overflow.
template <class T>
std::optional<T> parse_integer(std::string_view text, int base = 10) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || rest != end || text.empty()) return std::nullopt;
  return value;
}

/// The whole of `text` as a decimal number within the bounds; nothing for a NaN.
inline std::optional<double> parse_decimal(std::string_view text, double low, double high) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || text.empty()) return std::nullopt;
  if (!(value >= low && value <= high)) return std::nullopt;
  return value;
}

/// "4096", "64K", "1M", "2G" (powers of 1024; "KiB" and the like too).
inline std::optional<uint64_t> parse_size(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const auto value = parse_integer<uint64_t>(text.substr(0, digits));
  const std::string_view unit = text.substr(digits);
  int shift = 0;
  if (unit == "K" || unit == "k" || unit == "KiB")
    shift = 10;
  else if (unit == "M" || unit == "MiB")
    shift = 20;
  else if (unit == "G" || unit == "GiB")
    shift = 30;
  else if (!unit.empty() && unit != "B")
    return std::nullopt;
  if (!value || *value > (UINT64_MAX >> shift)) return std::nullopt;
  return *value << shift;
}

}  // namespace weft::tools
