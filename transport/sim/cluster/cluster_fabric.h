// SPDX-License-Identifier: Apache-2.0
// One host of a simulated cluster, as a Fabric.
//
// Datagrams are copied when they are posted. Writes are cut into packets as the NIC sends them,
// read from their source then, and put in place packet by packet; a write of which one is missing
// vanishes, with what was before it already written. Any first packet is taken, whatever its
// number, as an unreliable queue pair does.
//
// Threading and ownership: the cluster's.
#pragma once

#include <deque>
#include <vector>

#include "transport/fabric.h"
#include "transport/sim/cluster/cluster.h"
#include "transport/sim/regions.h"

namespace weft::sim {

class ClusterFabric final : public Fabric, public NicOwner {
 public:
  ClusterFabric(Cluster& cluster, HostIndex host) : cluster_(cluster), host_(host) {}

  const char* name() const override { return "sim"; }
  Offloads offloads() const override;
  uint32_t max_segment_bytes() const override;
  int max_paths() const override { return cluster_.config().paths; }
  uint32_t speed_mbps() const override;

  Result<LinkId> create_link(LinkAddress* address) override;
  Status connect_link(LinkId link, std::span<const std::byte> peer_address) override;
  int paths(LinkId link) const override;
  void close_link(LinkId link) override;

  Result<MemoryKeys> register_memory(const MemoryRange& range) override;
  void deregister_memory(MemoryKeys keys) override;

  void kill_path(LinkId link, PathIndex path, uint32_t epoch) override;
  void reopen_path(LinkId link, PathIndex path, uint32_t epoch) override;

  size_t room() const override;
  size_t post(Time now, std::span<const SegmentPost> batch) override;
  size_t post_control(Time now, std::span<const ControlPost> batch) override;
  size_t poll(Time now, size_t budget, FabricSink& sink) override;
  std::span<const int> wait_descriptors() const override { return {}; }

  // NicOwner.
  void look(Time now) override;
  bool next_frame(uint32_t queue, Time now, Frame& frame) override;

 private:
  static constexpr size_t kBatch = 64;

  struct Write {
    SegmentPost post;
    uint32_t sent = 0;
    uint64_t number = 0;
  };
  struct PathEnd {
    uint32_t entropy = 0;
    bool open = true;
    uint32_t epoch = 0;
    uint32_t queue = 0;  // the NIC's, of writes; 0: none yet
    std::deque<Write> writes;
    // Of what comes in: the write under way, and how much of it is here.
    uint64_t number = UINT64_MAX;
    uint32_t have = 0;
  };
  struct LinkEnd {
    bool connected = false, closed = false;
    HostIndex peer = 0;
    LinkId peer_link = 0;
    std::vector<PathEnd> paths;
  };
  struct News {  // what poll hands out beside datagrams, in order
    enum class Kind : uint8_t { kLanding, kCompletion, kChange } kind;
    Landing landing;
    Completion completion;
    PathChange change;
  };

  LinkEnd* link(LinkId id);
  PathEnd* path(LinkId id, PathIndex index);
  void post_datagram(const SegmentPost& post, LinkEnd& end);
  bool post_write(Time now, const SegmentPost& post);
  size_t deliver_datagrams(Time now, size_t budget, FabricSink& sink);
  void take_write(const Frame& frame);
  size_t deliver_news(size_t budget, FabricSink& sink);

  Cluster& cluster_;
  const HostIndex host_;
  std::vector<LinkEnd> links_;
  RegionTable regions_;
  std::deque<Frame*> datagrams_;                      // posted, of one queue of the NIC
  std::vector<std::pair<LinkId, PathIndex>> queues_;  // of the NIC from 1 on
  std::deque<News> news_;
  uint64_t writes_ = 0;
};

}  // namespace weft::sim
