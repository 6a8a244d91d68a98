// SPDX-License-Identifier: Apache-2.0
// The sockets on which an endpoint sends and returns size probes (size_search.h).
//
// A few UDP sockets beside the out-of-band TCP one. A probe is returned only to who presents a
// listener's cookie, and with no more bytes than came, so strangers get nothing and nothing is
// amplified. A way through the network follows from the ports, there and back, and may be dead: so
// probes of different ways leave by different sockets, and by different ones they are returned.
// kHome sockets are always there, since peers are told the first one's port and choose by the nonce
// which of them returns their probe; more are opened for a search that needs more ways, until
// rest().
//
// Threading: under the endpoint's set-up mutex. Ownership: the sockets. What may fail: open(), in
// words; after that only datagrams get lost.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/base/ip_address.h"
#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"
#include "transport/wire/handshake.h"

namespace weft {

class PathProbe {
 public:
  static constexpr size_t kHome = 8;  // known to peers (handshake.h)
  static constexpr size_t kMost = 40;
  // A nonce, from its high end: the search, the way, the peer's socket that is to return the probe.
  static constexpr uint64_t kWayMask = 0xfff;
  static constexpr uint64_t search_of(uint64_t nonce) { return nonce & ~kWayMask; }

  Status open(const IpAddress& own);

  // Readable when next() may find something.
  int descriptor() const { return epoll_.get(); }
  uint16_t port() const { return port_; }  // 0: not open
  size_t sockets() const { return sockets_.size(); }

  // `search`: of search_of(), for all probes of a search.
  void send(const IpAddress& to, uint16_t port, const wire::Cookie& cookie, uint64_t search,
            int way, uint32_t segment);
  // No search is on: the sockets that were opened for it are closed.
  void rest();

  struct Arrival {
    SocketAddress from;
    wire::SizeProbe probe;
    uint32_t segment = 0;
    uint64_t search() const { return search_of(probe.nonce); }
    int way() const { return static_cast<int>((probe.nonce & kWayMask) / kHome); }
  };
  // The next that arrived and makes sense; false when there is none, or enough for one time.
  bool next(Arrival* arrival, int* patience);
  void give_back(const Arrival& arrival);

 private:
  Status open_socket();
  void send_to(const SocketAddress& to, const wire::SizeProbe& probe, uint32_t segment,
               size_t which);

  IpAddress own_;
  uint16_t port_ = 0;
  FileDescriptor epoll_;
  std::vector<FileDescriptor> sockets_;
  std::vector<std::byte> room_;
};

}  // namespace weft
