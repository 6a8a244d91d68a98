// SPDX-License-Identifier: Apache-2.0
// A peer's UDP address: there is one way to write each, so what is accepted encodes to its bytes.
#include <algorithm>

#include "tests/fuzz/fuzz.h"
#include "transport/udp/udp_address.h"

namespace weft::fuzz {

bool feed(std::span<const std::byte> input) {
  const Result<udp::UdpAddress> address = udp::decode_address(input);
  if (!address.ok()) {
    promise(address.status().code() == Code::kRemote && !address.status().words().empty() &&
                address.status().words().size() < 500,
            "a refusal has words");
    return false;
  }
  promise(!address->ports.empty() && address->ports.size() <= kMaxPaths, "ports are in range");
  promise(std::ranges::find(address->ports, 0) == address->ports.end(), "no port is 0");
  promise(address->address.unicast(), "an address names one host");
  promise(std::ranges::equal(udp::encode_address(*address), input),
          "an address encodes back to its bytes");
  return true;
}

}  // namespace weft::fuzz
