// SPDX-License-Identifier: Apache-2.0
// The socket on which an endpoint sends and returns size probes (size_search.h).
//
// One UDP socket beside the out-of-band TCP one. It returns a probe only to who presents a
// listener's cookie, and no more bytes than came, so strangers get nothing and nothing is amplified.
// The probes take one way of many (one pair of ports): ways that differ in what they carry are not
// told apart.
//
// Threading: under the endpoint's set-up mutex. Ownership: the socket. What may fail: open(), in
// words; after that only datagrams get lost.
#pragma once

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

  int descriptor() const { return socket_.get(); }
  uint16_t port() const { return port_; }  // 0: not open

  void send(const IpAddress& to, uint16_t port, const wire::Cookie& cookie, uint64_t nonce,
            uint32_t segment);
  struct Arrival {
    SocketAddress from;
    wire::SizeProbe probe;
    uint32_t segment = 0;
  };
  // The next that arrived and makes sense; false when there is none, or enough for one time.
  bool next(Arrival* arrival, int* patience);
  void give_back(const Arrival& arrival);

 private:
  void send_to(const SocketAddress& to, const wire::SizeProbe& probe, uint32_t segment);

  IpAddress own_;
  uint16_t port_ = 0;
  FileDescriptor socket_;
  std::vector<std::byte> room_;
};

}  // namespace weft
