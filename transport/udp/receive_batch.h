// SPDX-License-Identifier: Apache-2.0
// Datagrams on their way out of the sockets: read in batches into an arena of the fabric's own,
// shown to the sink, placed where the sink says, shown again.
//
// The arena is allocated once, in slots of the largest datagram that can come, and is used from its
// start each time: what was just written by the kernel is still in the cache when it is copied on.
// How much one batch may hold is bounded for the same reason. A slot yields one datagram; with GRO
// it will yield a train.
//
// Invariant: no datagram is shown that does not fit its slot, none is shown twice; bytes leave a
// slot only to where the sink pointed. What may fail: nothing; what the kernel refuses is counted.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/fabric.h"
#include "transport/memory.h"
#include "transport/udp/udp.h"

namespace weft::udp {

class ReceiveBatch {
 public:
  // For datagrams up to datagram_bytes.
  explicit ReceiveBatch(uint32_t datagram_bytes);

  size_t room() const { return slots_ - used_; }

  struct Read {
    size_t taken = 0;      // datagrams that left the socket, delivered later or dropped here
    bool drained = false;  // there was less than was asked for
  };
  // Reads up to `limit` datagrams, and no more than there is room for.
  Read read(int socket, size_t limit, UdpCounters& counters);

  // Hands all that was read to the sink and places it; returns how many datagrams that were.
  // Empties.
  size_t deliver(FabricSink& sink, Memory& memory);

 private:
  // Slots begin on cache lines: the kernel's copy into a slot 16 bytes off took seven times as long.
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  size_t slots_;
  size_t used_ = 0;   // slots
  size_t shown_ = 0;  // datagrams
  std::unique_ptr<Line[]> arena_;
  std::vector<iovec> room_;
  std::vector<mmsghdr> headers_;
  std::vector<Datagram> datagrams_;
  std::vector<Placement> placements_;
};

}  // namespace weft::udp
