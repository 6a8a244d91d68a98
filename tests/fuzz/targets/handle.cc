// SPDX-License-Identifier: Apache-2.0
// The 128 bytes that NCCL carries from listen to connect, and the datagram that asks how long
// datagrams may be.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/fuzz/fuzz.h"
#include "transport/wire/handshake.h"

namespace weft::fuzz {
namespace {

using namespace wire;

bool feed_handle(std::span<const std::byte> input) {
  ListenHandle handle;
  if (!decode_handle(input, &handle)) return false;
  promise(handle.port != 0 && handle.address.unicast(), "a handle names one host and a port");
  promise(handle.address.ipv6 ||
              std::all_of(handle.address.bytes.begin() + 4, handle.address.bytes.end(),
                          [](uint8_t b) { return b == 0; }),
          "an IPv4 address is four bytes and nothing else");
  std::array<std::byte, kHandleBytes> again;
  encode_handle(again, handle);
  const size_t address_end = handle.address.ipv6 ? 24 : 12;
  promise(std::equal(again.begin(), again.begin() + address_end, input.begin()) &&
              std::equal(again.begin() + 24, again.begin() + 62, input.begin() + 24),
          "a handle encodes back to its bytes");
  return true;
}

bool feed_size_probe(std::span<const std::byte> input) {
  SizeProbe probe;
  if (!decode_size_probe(input, &probe)) return false;
  promise(probe.bytes == input.size(), "a size probe is as long as it says");
  std::array<std::byte, kSizeProbeBytes> again;
  encode_size_probe(again, probe);
  std::memcpy(again.data() + 6, input.data() + 6, 2);  // reserved
  promise(std::equal(again.begin(), again.end(), input.begin()),
          "a size probe encodes back to its bytes");
  return true;
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  const bool handle = feed_handle(input);
  return feed_size_probe(input) || handle;
}

}  // namespace weft::fuzz
