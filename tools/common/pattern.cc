// SPDX-License-Identifier: Apache-2.0
// Pattern fill and check, a vector of eight words at a time; see pattern.h for the idea.
#include "tools/common/pattern.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace weft::tools {
namespace {

constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;  // odd
constexpr uint64_t kGuardSeed = 0xD15EA5EDD15EA5EDu;

// The compiler turns this into whatever vectors the target has.
using Words = uint64_t __attribute__((vector_size(64)));
constexpr size_t kWordsBytes = sizeof(Words);
constexpr size_t kBlock = 64 * kWordsBytes;

inline void first_words(Words& words, uint64_t seed) {
  for (uint64_t i = 0; i < 8; ++i) words[i] = seed + i * kStep;
}

// The inverse of an odd number modulo 2^64, by Newton's iteration.
constexpr uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;
  for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
  return x;
}
static_assert(kStep * inverse(kStep) == 1);

size_t first_difference(const unsigned char* data, size_t bytes, uint64_t seed, size_t from) {
  for (size_t at = from; at < bytes; ++at) {
    const uint64_t word = seed + (at / 8) * kStep;
    if (data[at] != static_cast<unsigned char>(word >> (8 * (at % 8)))) return at;
  }
  return bytes;
}

}  // namespace

uint64_t pattern_seed(uint32_t rank, uint64_t number) {
  uint64_t z = (static_cast<uint64_t>(rank) + 1) * 0xA24BAED4963EE407u + number * kStep + 1;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void fill_pattern(void* destination, size_t bytes, uint64_t seed) {
  auto* at = static_cast<unsigned char*>(destination);
  Words words;
  first_words(words, seed);
  const Words step = Words{} + 8 * kStep;
  for (; bytes >= kWordsBytes; bytes -= kWordsBytes, at += kWordsBytes, words += step) {
    std::memcpy(at, &words, kWordsBytes);
  }
  if (bytes > 0) std::memcpy(at, &words, bytes);
}

uint64_t pattern_from(uint64_t seed, size_t offset) { return seed + offset / 8 * kStep; }

std::optional<size_t> check_pattern(const void* data, size_t bytes, uint64_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  Words words;
  first_words(words, seed);
  const Words step = Words{} + 8 * kStep;
  size_t offset = 0;
  while (bytes - offset >= kWordsBytes) {
    const size_t end = std::min(offset + kBlock, bytes / kWordsBytes * kWordsBytes);
    Words wrong{};
    size_t here = offset;
    for (; here < end; here += kWordsBytes, words += step) {
      Words seen;
      std::memcpy(&seen, at + here, kWordsBytes);
      wrong |= seen ^ words;
    }
    uint64_t any = 0;
    for (int i = 0; i < 8; ++i) any |= wrong[i];
    if (any != 0) return first_difference(at, bytes, seed, offset);
    offset = end;
  }
  const size_t first = first_difference(at, bytes, seed, offset);
  if (first < bytes) return first;
  return std::nullopt;
}

std::string describe_wrong_bytes(const void* data, size_t bytes, uint64_t seed,
                                 const std::string& what, const std::vector<KnownMessage>& known) {
  const auto* at = static_cast<const unsigned char*>(data);
  size_t count = 0;
  size_t first = bytes;
  size_t last = 0;
  bool zeros = true;
  for (size_t i = first_difference(at, bytes, seed, 0); i < bytes;
       i = first_difference(at, bytes, seed, i + 1)) {
    first = std::min(first, i);
    last = i;
    ++count;
    zeros = zeros && at[i] == 0;
  }
  if (count == 0) {
    return fmt::format(
        "wrong bytes in {}, which became right while they were looked at: the "
        "receive was reported done before its data was there",
        what);
  }
  const size_t word_at = std::min(first / 8 * 8, bytes >= 8 ? bytes - 8 : 0);
  uint64_t seen = 0;
  std::memcpy(&seen, at + word_at, std::min<size_t>(8, bytes));
  std::string text = fmt::format(
      "wrong bytes in {}: {} of {} differ, the first at {}, the last at {}; at {} expected "
      "{:016x}, seen {:016x}",
      what, count, bytes, first, last, word_at, seed + (word_at / 8) * kStep, seen);
  if (zeros) return text + ": never written (zeros)";
  // A tail shorter than a word was read at an offset that is no multiple of 8: not invertible.
  const size_t probe = (first + 7) / 8 * 8;
  if (count > 8 && probe + 8 <= bytes) {
    std::memcpy(&seen, at + probe, 8);
    for (const KnownMessage& message : known) {
      const uint64_t index = (seen - message.seed) * inverse(kStep);
      if (index >= message.bytes / 8) continue;
      return text + fmt::format(": at {} are bytes {} of {}", probe, index * 8,
                                message.seed == seed ? "the same message, moved" : message.name);
    }
  }
  if (count == 1) {
    return text + fmt::format(": one byte corrupted (xor {:02x})",
                              at[first] ^ static_cast<unsigned char>((seed + (first / 8) * kStep) >>
                                                                     (8 * (first % 8))));
  }
  return text + ": bytes of no known message";
}

void fill_guard(void* at, size_t bytes) { fill_pattern(at, bytes, kGuardSeed); }

std::optional<size_t> check_guard(const void* at, size_t bytes) {
  return check_pattern(at, bytes, kGuardSeed);
}

}  // namespace weft::tools
