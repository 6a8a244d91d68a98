// SPDX-License-Identifier: Apache-2.0
//
// Words for a Status: fmt's formatting, compiled once.
//
//   return Status(Code::kSystem, phrase("cannot bind {}: {}", address, strerrordesc_np(errno)));
//
// The same as fmt::format, checked at compile time, but the formatter itself is built in phrase.cc
// alone: a file that calls fmt::format builds all of it again, which takes longer than the rest of
// most files. Threading: any. What may fail: memory, by std::bad_alloc, as for any string.
#pragma once

#include <fmt/core.h>

#include <string>

namespace weft {

namespace detail {
std::string format_phrase(fmt::string_view format, fmt::format_args arguments);
}  // namespace detail

template <class... Args>
std::string phrase(fmt::format_string<const Args&...> format, const Args&... args) {
  return detail::format_phrase(format, fmt::make_format_args(args...));
}

}  // namespace weft
