// SPDX-License-Identifier: Apache-2.0
// A peer's address on the simulated network: only an address that the other host made is taken.
#include <algorithm>

#include "tests/fuzz/fuzz.h"
#include "transport/sim/network.h"

namespace weft::fuzz {

bool feed(std::span<const std::byte> input) {
  sim::SimNetwork network(sim::SimConfig{}, 1);
  LinkAddress ours, theirs;
  const Result<LinkId> link = network.host(0).create_link(&ours);
  promise(link.ok() && network.host(1).create_link(&theirs).ok(), "links can be made");
  const Status status = network.host(0).connect_link(*link, input);
  if (!status.ok()) {
    promise(!status.words().empty(), "a refusal has words");
    return false;
  }
  // The last three bytes are reserved.
  promise(
      input.size() == theirs.size() && std::equal(theirs.begin(), theirs.end() - 3, input.begin()),
      "an address is one that the peer made");
  return true;
}

}  // namespace weft::fuzz
