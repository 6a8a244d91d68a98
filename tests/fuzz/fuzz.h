// SPDX-License-Identifier: Apache-2.0
//
// What a fuzz target is: one function that takes bytes as a stranger, a file or a user might give
// them, hands them to one decoder and checks what that decoder promises.
//
// With clang and -Dfuzz=enabled libFuzzer drives it (harness.cc) in search of inputs that break a
// promise or make a sanitizer speak. In every other build it meets the committed inputs, whole, cut
// short and flipped (replay.cc). Either way the input is a heap block of exactly its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "transport/wire/cursor.h"

namespace weft::fuzz {

// One input. True when the decoder accepted it: a corpus of which nothing is accepted has grown
// stale and proves little.
bool feed(std::span<const std::byte> input);

// Ends the process, which is how libFuzzer learns of it.
inline void promise(bool kept, const char* words) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", words);
  std::abort();
}

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Up to the next `separator`, which is taken off too; the rest when there is none.
inline std::string_view take_until(std::string_view* text, char separator) {
  const size_t end = text->find(separator);
  const std::string_view piece = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return piece;
}

inline bool has_control(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

}  // namespace weft::fuzz
