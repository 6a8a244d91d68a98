// SPDX-License-Identifier: Apache-2.0
// Datagrams on their way out of the sockets: read in batches into an arena of the fabric's own,
// shown to the sink, placed where the sink says, shown again.
//
// The arena is allocated once and is used from its start each time: what was just written by the
// kernel is still in the cache when it is copied on. A slot takes what one message of the kernel
// holds: a datagram, or with UDP_GRO a train, datagrams of one size of which the last may be
// shorter. A train is cut when it is shown and no earlier, so that a caller may take as little of
// it as it wants: the rest waits in its slot. Lengths and the size at which to cut are taken as
// hostile, since the peer chose them.
//
// Invariant: no datagram is shown that is longer than any of ours, none is shown twice, and all are
// shown in the order in which they were read; bytes leave a slot only to where the sink pointed.
// What may fail: nothing; what the kernel refuses is counted.
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
  // For datagrams up to datagram_bytes; `trains` where the sockets have UDP_GRO.
  ReceiveBatch(uint32_t datagram_bytes, bool trains);

  // Datagrams that were read and not delivered.
  size_t waiting() const { return waiting_; }
  // Slots that can be read into.
  size_t room() const { return slots_ - used_; }
  // It holds as much as the cache does well with: to be delivered before more is read.
  bool full() const { return room() == 0 || held_bytes_ >= kFullBytes; }
  // How many datagrams a message of the kernel has had lately: with less than this to spare, a
  // read would bring more than is wanted.
  size_t usual_train() const { return usual_train_; }

  struct Read {
    size_t taken = 0;      // messages that left the socket
    bool drained = false;  // there were fewer than were asked for
  };
  // Reads about `wanted` datagrams, in no more messages than there is room for, nor than
  // `messages`. A train may bring more than was wanted.
  Read read(int socket, size_t wanted, size_t messages, UdpCounters& counters);

  // Hands up to `budget` of what was read to the sink and places it; returns how many datagrams.
  size_t deliver(FabricSink& sink, Memory& memory, size_t budget);

 private:
  static constexpr size_t kFullBytes = 256u << 10;

  // Slots begin on cache lines: the kernel's copy into a slot 16 bytes off took seven times as
  // long. So do the datagrams of a train of full segments, headers and payload being whole lines.
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  // What a slot holds and has not shown.
  struct Held {
    const std::byte* at = nullptr;
    uint32_t bytes = 0;
    uint32_t cut = 0;     // bytes of each datagram but the last
    uint32_t pieces = 0;  // datagrams
    bool marked = false;
  };
  struct alignas(cmsghdr) Control {
    std::byte bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(int))];
  };
  void hold(size_t slot, UdpCounters& counters);
  size_t cut(size_t limit);

  const uint32_t datagram_bytes_;
  size_t slots_;
  size_t used_ = 0;   // slots read into
  size_t first_ = 0;  // of held_, the one to show next
  size_t held_count_ = 0;
  size_t held_bytes_ = 0;
  size_t waiting_ = 0;
  size_t usual_train_ = 1;
  std::unique_ptr<Line[]> arena_;
  std::vector<iovec> room_;
  std::vector<mmsghdr> headers_;
  std::vector<Control> control_;
  std::vector<Held> held_;
  std::vector<Datagram> datagrams_;
  std::vector<Placement> placements_;
};

}  // namespace weft::udp
