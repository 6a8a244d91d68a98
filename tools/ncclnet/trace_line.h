// SPDX-License-Identifier: Apache-2.0
//
// One line of a recorded run, without its surroundings: its words, and what they say. Whether the
// objects it names exist is for trace_parse.cc to check. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ncclnet/trace.h"

namespace weft::ncclnet {

/// Views into the text they were split from.
struct LineWords {
  std::vector<std::string_view> in, out;  // before and after the lone '=', without named values
  std::map<std::string_view, std::string_view> named;
};

LineWords split_line(std::string_view text);

/// Fills in what the words of `line.call` say. Returns what is wrong with them, empty when nothing.
std::string parse_line(const LineWords& words, TraceLine& line);

}  // namespace weft::ncclnet
