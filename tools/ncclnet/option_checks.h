// SPDX-License-Identifier: Apache-2.0
//
// What a value on the command line may be, as checks of CLI11's. CLI11's own Range lets a NaN pass
// and reads 010 as 8; these take plain decimal numbers within their bounds and nothing else, and
// say the bounds. Pure; the words are what is wrong, empty when nothing is.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/common/numbers.h"

namespace weft::ncclnet {

inline CLI::Validator decimal_within(double low, double high) {
  const std::string bounds = fmt::format("from {:g} to {:g}", low, high);
  return CLI::Validator(
      [=](std::string& text) {
        if (tools::parse_decimal(text, low, high)) return std::string();
        return fmt::format("'{}' is no number {}", text, bounds);
      },
      fmt::format("[{:g} - {:g}]", low, high));
}

// For `transform`: what is handed on has no leading 0, which CLI11 would take for octal.
inline CLI::Validator whole_within(uint64_t low, uint64_t high) {
  const std::string bounds = fmt::format("from {} to {}", low, high);
  return CLI::Validator(
      [=](std::string& text) {
        const auto value = tools::parse_integer<uint64_t>(text);
        if (!value || *value < low || *value > high) {
          return fmt::format("'{}' is no whole number {}", text, bounds);
        }
        text = std::to_string(*value);
        return std::string();
      },
      fmt::format("[{} - {}]", low, high));
}

inline CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? std::string("is empty") : std::string(); }, "");
}

}  // namespace weft::ncclnet
