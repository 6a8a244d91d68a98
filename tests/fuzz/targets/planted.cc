// SPDX-License-Identifier: Apache-2.0
// A decoder that is wrong on purpose: a length is believed that is one too large. It has to be
// found in the seconds that the others get, or their silence means nothing.
#include "tests/fuzz/fuzz.h"

namespace weft::fuzz {
namespace {

constexpr size_t kHeader = 3;  // u16 magic, u8 length, then so many bytes

// The sum of the bytes, -1 for what is none of ours.
int planted_sum(std::span<const std::byte> bytes) {
  wire::Reader r(bytes);
  const auto magic = r.get<uint16_t>();
  const auto length = r.get<uint8_t>();
  if (r.failed() || magic != 0x4657) return -1;
  if (length > r.left() + 1) return -1;  // the planted mistake
  int sum = 0;
  for (size_t i = 0; i < length; ++i) sum += static_cast<int>(bytes.data()[kHeader + i]);
  promise(kHeader + length <= bytes.size(), "it reads no further than the input goes");
  return sum;
}

}  // namespace

bool feed(std::span<const std::byte> input) { return planted_sum(input) >= 0; }

}  // namespace weft::fuzz
