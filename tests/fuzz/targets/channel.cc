// SPDX-License-Identifier: Apache-2.0
// What weft_ncclnet and its ranks say to each other. A rank that runs a broken plugin may say
// anything.
#include "tools/ncclnet/channel.h"
#include "tests/fuzz/fuzz.h"

namespace weft::fuzz {

bool feed(std::span<const std::byte> input) {
  const std::string_view bytes = text_of(input);
  const auto packet = ncclnet::decode(bytes.data(), bytes.size());
  if (!packet) return false;
  promise(packet->key.size() + packet->text.size() < bytes.size(), "nothing is made up");
  if (packet->key.size() > 64 || bytes.size() > ncclnet::kMaxPacketBytes) return false;
  promise(ncclnet::encode(*packet) == bytes, "a packet encodes back to its bytes");
  return true;
}

}  // namespace weft::fuzz
