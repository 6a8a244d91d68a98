// SPDX-License-Identifier: Apache-2.0
// The sockets on which an endpoint sends and returns size probes (size_search.h).
//
// A few UDP sockets beside the out-of-band TCP one. A probe is returned only to who presents a
// listener's cookie, and with no more bytes than came, so strangers get nothing and nothing is
// amplified. Each round of probes leaves by another socket, as a way through the network follows
// from the ports and one of them may be dead; the first one's port is the one that peers are told.
// Ways that differ in what they carry are not told apart.
//
// Threading: under the endpoint's set-up mutex. Ownership: the sockets. What may fail: open(), in
// words; after that only datagrams get lost.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"
#include "transport/wire/handshake.h"

namespace weft {

class PathProbe {
 public:
  Status open(const IpAddress& own);

  // Readable when next() may find something.
  int descriptor() const { return epoll_.get(); }
  uint16_t port() const { return port_; }  // 0: not open

  // `round` chooses the way: alike for probes that are to be compared.
  void send(const IpAddress& to, uint16_t port, const wire::Cookie& cookie, uint64_t nonce,
            uint32_t segment, int round);
  struct Arrival {
    SocketAddress from;
    wire::SizeProbe probe;
    uint32_t segment = 0;
  };
  // The next that arrived and makes sense; false when there is none, or enough for one time.
  bool next(Arrival* arrival, int* patience);
  void give_back(const Arrival& arrival);

 private:
  static constexpr size_t kSockets = 4;

  Status open_socket(size_t which);
  void send_to(const SocketAddress& to, const wire::SizeProbe& probe, uint32_t segment,
               size_t which);

  IpAddress own_;
  uint16_t port_ = 0;
  FileDescriptor epoll_;
  std::array<FileDescriptor, kSockets> sockets_;
  std::vector<std::byte> room_;
};

}  // namespace weft
