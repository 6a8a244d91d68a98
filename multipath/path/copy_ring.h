// SPDX-License-Identifier: Apache-2.0
// The copies of segments that one path carries, in the order in which they were posted.
//
// A copy's number is its packet number on a datagram fabric and its place in the posting order on a
// placing one; numbers are never reused, so a number names one copy for ever. A copy leaves the
// ring once it is settled (its fate is known) and its source is no longer read. Bounded: a full
// ring takes no more, and the path then waits. Memory is allocated with the first copy, so an idle
// path costs nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/base/units.h"
#include "transport/wire/packet.h"

namespace weft {

struct Copy {
  uint32_t message = 0;  // name of the message in the sender's pool
  uint32_t message_generation = 0;
  uint32_t segment = 0;
  uint32_t bytes = 0;  // as counted in flight
  Time sent;
  uint64_t death_stamp = 0;    // meaningful when condemned
  uint32_t epoch = 0;          // of the path, placing fabrics
  bool settled = true;         // arrived, dead and buried, or never sent
  bool condemned = false;      // cannot arrive any more; a repair waits for state of death_stamp
  bool suspect = false;        // a younger one arrived; if it still does, order is lost
  bool source_in_use = false;  // the fabric may still read the source
  bool probe = false;          // carries nothing
  bool repair = false;         // not the segment's first copy
  bool lost = false;           // buried, and not seen to arrive since
};

class CopyRing {
 public:
  static constexpr uint64_t kCapacity = 256;

  uint64_t oldest() const { return oldest_; }  // the first copy that is still in the ring
  uint64_t next() const { return next_; }      // the number of the next copy
  bool empty() const { return oldest_ == next_; }
  bool full() const { return next_ - oldest_ == kCapacity; }
  bool holds(uint64_t number) const { return number >= oldest_ && number < next_; }

  // It has left the ring, and what is known of it was not written over yet.
  bool remembers(uint64_t number) const {
    return number < oldest_ && number + kCapacity >= next_ && number >= wire::kFirstPacket;
  }

  // Precondition: holds(number) or remembers(number).
  Copy& at(uint64_t number) { return copies_[number % kCapacity]; }
  const Copy& at(uint64_t number) const { return copies_[number % kCapacity]; }

  // Precondition: !full().
  Copy& append() {
    if (!copies_) copies_ = std::make_unique<Copy[]>(kCapacity);
    Copy& copy = copies_[next_++ % kCapacity];
    copy = Copy{};
    return copy;
  }

  // Lets go of the oldest copies that nobody needs any more.
  void trim() {
    while (!empty() && at(oldest_).settled && !at(oldest_).source_in_use) ++oldest_;
  }

 private:
  std::unique_ptr<Copy[]> copies_;
  uint64_t oldest_ = wire::kFirstPacket;
  uint64_t next_ = wire::kFirstPacket;
};

}  // namespace weft
