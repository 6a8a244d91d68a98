// SPDX-License-Identifier: Apache-2.0
// The UDP fabric itself: links over a shared set of sockets, and the three batch calls.
//
// Sending: a batch is cut into runs of posts that leave by the same socket; each run is one
// sendmmsg. Posts come grouped in bursts by path, so runs are long. Receiving: sockets with
// something to read take turns until the budget is used; a train may bring more than that, and the
// rest is what the next poll begins with. A datagram names its connection itself; the fabric does
// not look into it and does not care which link it belongs to, so what comes after close_link goes
// to the sink like any other, and the sink answers "nowhere".
//
// Invariant: a post on a link or path that does not exist is taken and lost, never stuck: a batch
// always makes progress unless the kernel has no room. Threading and ownership: see udp.h.
#pragma once

#include <array>
#include <vector>

#include "transport/base/pool.h"
#include "transport/fabric.h"
#include "transport/system/socket_address.h"
#include "transport/udp/receive_batch.h"
#include "transport/udp/send_batch.h"
#include "transport/udp/socket_set.h"
#include "transport/udp/udp.h"

namespace weft::udp {

class UdpFabric final : public Fabric {
 public:
  // config must have been checked and filled in (open_udp).
  UdpFabric(const UdpConfig& config, SocketSet sockets, Memory& memory);

  const char* name() const override { return "udp"; }
  Offloads offloads() const override { return {.ecn = sockets_.sees_marks()}; }
  uint32_t max_segment_bytes() const override { return segment_bytes_; }
  uint32_t burst_bytes(uint32_t segment_bytes) const override {
    return SendBatch::train_datagrams(segment_bytes + kMaxSegmentHeader) * segment_bytes;
  }
  int max_paths() const override { return kMaxPaths; }
  uint32_t speed_mbps() const override { return speed_mbps_; }

  Result<LinkId> create_link(LinkAddress* address) override;
  Status connect_link(LinkId link, std::span<const std::byte> peer_address) override;
  int paths(LinkId link) const override;
  void close_link(LinkId link) override;

  Result<MemoryKeys> register_memory(const MemoryRange& range) override;
  void deregister_memory(MemoryKeys) override {}

  void kill_path(LinkId, PathIndex, uint32_t) override {}
  void reopen_path(LinkId, PathIndex, uint32_t) override {}

  size_t post(Time now, std::span<const SegmentPost> batch) override;
  size_t post_control(Time now, std::span<const ControlPost> batch) override;
  size_t poll(Time now, size_t budget, FabricSink& sink) override;

  std::span<const int> wait_descriptors() const override { return wait_; }

  UdpCounters counters() const;

 private:
  // A LinkId is its place in the pool, low bits, and the place's generation, so that the id of a
  // closed link finds nothing for a million reuses.
  static constexpr size_t kMaxLinks = 1u << 12;
  static constexpr uint32_t kGenerations = 1u << 20;
  // messages, datagrams or trains, that a socket may deliver before the next one's turn
  static constexpr size_t kTurn = 16;

  struct Link {
    uint32_t pool_index = 0;
    uint32_t pool_generation = 1;  // so that 0 is no link's id
    bool in_use = false;
    size_t paths = 0;
    std::vector<SocketAddress> remotes;  // empty until connected
  };
  // How a post leaves; `to` is null when it cannot.
  struct Route {
    size_t socket = 0;
    const SocketAddress* to = nullptr;
  };

  static LinkId id_of(const Link& link) {
    return link.pool_generation * static_cast<uint32_t>(kMaxLinks) + link.pool_index;
  }
  Link* find(LinkId id) const;
  Status reachable(const IpAddress& peer) const;
  Route route(LinkId id, PathIndex path) const;
  bool outgoing(const SegmentPost& post, Outgoing* out) const;
  bool outgoing(const ControlPost& post, Outgoing* out) const;
  template <class Post>
  size_t send(std::span<const Post> batch);
  template <class Post>
  size_t gather_run(std::span<const Post> posts, Route* by);

  const IpAddress address_;
  const uint32_t segment_bytes_;
  const uint32_t speed_mbps_;
  Memory& memory_;
  SocketSet sockets_;
  std::array<int, 1> wait_;
  mutable Pool<Link, kMaxLinks> links_;
  SendBatch send_batch_;
  ReceiveBatch receive_batch_;
  UdpCounters counters_;
};

}  // namespace weft::udp
