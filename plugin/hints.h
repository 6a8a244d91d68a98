// SPDX-License-Identifier: Apache-2.0
//
// What NCCL says with setNetAttr, in the transport's words. NCCL sets all bits of a mask when it
// says nothing of it, and numbers of its communicator's size where it does not know better, so what
// it says is taken for an upper bound; what makes no sense is taken for nothing said.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "multipath/connection/types.h"
#include "plugin/nccl/common.h"
#include "plugin/net.h"

namespace weft::plugin {

template <class T>
constexpr T bounded(int32_t number) {
  return static_cast<T>(std::clamp<int32_t>(number, 0, std::numeric_limits<T>::max()));
}

// The GPU at the other end of an LL or LL128 message spins on every line of it, one of a Simple one
// waits for a step of many messages.
constexpr TrafficHints hints_of(const NetAttributes& said) {
  constexpr uint32_t kNothingSaid = ~uint32_t{0};
  constexpr uint32_t kPolled = nccl::kProtocolLL | nccl::kProtocolLL128;
  TrafficHints hints;
  hints.operations = said.operations == kNothingSaid ? 0 : said.operations;
  hints.peers = bounded<uint16_t>(said.send.max_peers);
  hints.flows_per_peer = bounded<uint8_t>(said.send.max_flows_per_peer);
  hints.latency_bound = (said.protocols & kPolled) != 0 && (said.protocols & ~kPolled) == 0;
  return hints;
}

}  // namespace weft::plugin
