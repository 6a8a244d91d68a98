// SPDX-License-Identifier: Apache-2.0
// Datagrams on their way into one socket: gathered first, then handed to the kernel in one call.
//
// Header and payload are two pieces of an I/O vector, so the payload goes from the user's memory
// straight into the kernel's buffer. Successive datagrams of one size to one destination leave as a
// train: one message with UDP_SEGMENT (GSO) that the kernel, or the NIC, cuts up; the last may be
// shorter and ends it. A train costs the kernel's way down once instead of up to 64 times. Where
// the kernel or a device refuses trains, they are given up for good and the same datagrams go one
// by one.
//
// Invariant: flush() accounts for a prefix of what was added; a datagram that the kernel will never
// take counts as sent, and lost. Ownership: none; what add() is given must live until flush()
// returns. No allocation, no unbounded loop. What may fail: nothing; refusals are counted.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/system/socket_address.h"
#include "transport/udp/udp.h"

namespace weft::udp {

// One datagram as its poster holds it. `payload` may be null when payload_bytes is 0.
struct Outgoing {
  const std::byte* header = nullptr;
  uint32_t header_bytes = 0;
  const std::byte* payload = nullptr;
  uint32_t payload_bytes = 0;
};

class SendBatch {
 public:
  explicit SendBatch(bool trains);
  SendBatch(const SendBatch&) = delete;
  SendBatch& operator=(const SendBatch&) = delete;

  // How many datagrams of a size one train takes; at least 1.
  static constexpr uint32_t train_datagrams(uint32_t bytes) {
    return std::clamp(kMaxUdpPayload / std::max(bytes, 1u), 1u, kTrain);
  }

  bool empty() const { return messages_ == 0; }
  // False when the batch is full. `to` is compared by its address: the same object is the same
  // destination. A null `to` is for a connected socket.
  bool add(const Outgoing& datagram, const SocketAddress* to);

  struct Outcome {
    size_t datagrams = 0;  // of those added, in order, that are dealt with
    bool no_room = false;  // the kernel cannot take the next one now
  };
  // Empties the batch. What is not dealt with must be added again, if it is to be sent.
  Outcome flush(int socket, UdpCounters& counters);

 private:
  static constexpr size_t kMessages = 64;
  static constexpr size_t kPieces = 512;
  static constexpr uint32_t kTrain = 64;  // what the oldest kernel with UDP_SEGMENT takes

  struct Message {
    const SocketAddress* to = nullptr;
    uint32_t datagrams = 0;
    uint32_t datagram_bytes = 0;
    uint32_t bytes = 0;
    bool ended = false;  // its last datagram was shorter
  };
  enum class Verdict { kWait, kRetry, kPartTrains, kLost };

  bool joins(const Message& last, uint32_t bytes, const SocketAddress* to) const;
  void begin_message(uint32_t bytes, const SocketAddress* to);
  void set_train_size(size_t message);
  Verdict judge(int error, bool retried, const Message& message, UdpCounters& counters);

  bool trains_;
  size_t messages_ = 0;
  size_t pieces_ = 0;
  std::array<Message, kMessages> message_;
  std::array<mmsghdr, kMessages> headers_;
  std::array<iovec, kPieces> piece_;
  struct alignas(cmsghdr) Control {
    std::byte bytes[CMSG_SPACE(sizeof(uint16_t))];
  };
  std::array<Control, kMessages> control_;
};

}  // namespace weft::udp
