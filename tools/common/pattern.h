// SPDX-License-Identifier: Apache-2.0
//
// The bytes of test messages: what a sender fills in and a receiver checks.
//
// Word i (8 bytes) of a message is `seed + i * step` with an odd step, so every word of a message
// differs from all others of it, and of other messages whose seed differs: a shifted, swapped,
// stale or missing segment is seen, down to single bits. Both directions vectorise (several
// GB/s). Because the step is odd the rule can be inverted: from a wrong word one can say of which
// message, and where in it, the word is, which tells reordering from corruption.
// Pure functions of their arguments; any thread, any alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::tools {

/// The seed of message `number` of sender `rank`.
uint64_t pattern_seed(uint32_t rank, uint64_t number);

void fill_pattern(void* destination, size_t bytes, uint64_t seed);

/// The seed under which the piece from `offset` (a multiple of 8) on is a pattern by itself.
uint64_t pattern_from(uint64_t seed, size_t offset);

/// The offset of the first wrong byte, or nothing when all are right.
std::optional<size_t> check_pattern(const void* data, size_t bytes, uint64_t seed);

/// A message that wrong bytes may turn out to belong to.
struct KnownMessage {
  uint64_t seed;
  size_t bytes;
  std::string name;
};

/// Says what is wrong with data that failed check_pattern: where, how much, and whose bytes are
/// there instead. `what` names the message that was expected.
std::string describe_wrong_bytes(const void* data, size_t bytes, uint64_t seed,
                                 const std::string& what, const std::vector<KnownMessage>& known);

/// A guard behind received bytes (or in place of a source that may no longer be read).
void fill_guard(void* at, size_t bytes);
std::optional<size_t> check_guard(const void* at, size_t bytes);

}  // namespace weft::tools
