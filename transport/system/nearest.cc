// SPDX-License-Identifier: Apache-2.0
// Levenshtein's distance, row by row; see nearest.h.
#include "transport/system/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace weft {
namespace {

constexpr std::size_t kMaxBytes = 64;
constexpr std::size_t kLeastContained = 4;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(char a, char b) { return lower(a) == lower(b); }

// Insertions, deletions and replacements that turn `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::size_t, kMaxBytes + 1> row;  // from the first i characters of a to j of b
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (same(a[i], b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

bool contains(std::string_view text, std::string_view part) {
  return part.size() >= kLeastContained &&
         std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

std::string_view without(std::string_view word, std::string_view prefix) {
  const bool has =
      word.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), word.begin(), same);
  return has ? word.substr(prefix.size()) : word;
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> words,
                         std::string_view prefix) {
  const std::string_view wanted = without(word, prefix);
  if (wanted.empty() || wanted.size() > kMaxBytes) return {};
  std::string_view best;
  std::size_t least = 2 + wanted.size() / 4;
  for (const std::string_view candidate : words) {
    const std::string_view bare = without(candidate, prefix);
    if (bare.size() > kMaxBytes) continue;
    const std::size_t apart = distance(wanted, bare);
    if (apart >= least) continue;
    least = apart;
    best = candidate;
  }
  if (!best.empty()) return best;
  for (const std::string_view candidate : words) {
    const std::string_view bare = without(candidate, prefix);
    if (bare.size() > kMaxBytes) continue;
    if (contains(bare, wanted) || contains(wanted, bare)) return candidate;
  }
  return {};
}

}  // namespace weft
