// SPDX-License-Identifier: Apache-2.0
//
// Which of the words that exist somebody may have meant by one that does not.
//
// Near is what few keystrokes turn into the other (at most 1, and one more for every 4 characters),
// whatever the case, or what is contained in it. Bounded: words of more than 64 bytes are near to
// nothing. Threading: any. Nothing fails but memory.
#pragma once

#include <span>
#include <string_view>

namespace weft {

// Empty: none is near. `prefix` is what all words begin with; it says nothing about nearness.
std::string_view nearest(std::string_view word, std::span<const std::string_view> words,
                         std::string_view prefix = {});

}  // namespace weft
