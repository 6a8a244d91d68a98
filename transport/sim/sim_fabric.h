// SPDX-License-Identifier: Apache-2.0
// One host's end of a simulated network, as a Fabric. It decides nothing: posts go to the network,
// which draws their fate, and poll empties the host's inbox in the order in which things happened.
//
// Threading and ownership: the network's (network.h).
#pragma once

#include "transport/fabric.h"
#include "transport/sim/network.h"

namespace weft::sim {

class SimFabric final : public Fabric {
 public:
  SimFabric(SimNetwork& network, int number) : network_(network), number_(number) {}

  const char* name() const override { return "sim"; }
  Offloads offloads() const override;
  uint32_t max_segment_bytes() const override { return network_.config().max_segment_bytes; }
  int max_paths() const override { return network_.config().paths; }
  uint32_t speed_mbps() const override { return network_.config().speed_mbps; }

  Result<LinkId> create_link(LinkAddress* address) override;
  Status connect_link(LinkId link, std::span<const std::byte> peer_address) override;
  int paths(LinkId link) const override;
  void close_link(LinkId link) override { network_.close_link(number_, link); }

  Result<MemoryKeys> register_memory(const MemoryRange& range) override;
  void deregister_memory(MemoryKeys keys) override;

  void kill_path(LinkId link, PathIndex path, uint32_t epoch) override {
    network_.kill_path(number_, link, path, epoch);
  }
  void reopen_path(LinkId link, PathIndex path, uint32_t epoch) override {
    network_.reopen_path(number_, link, path, epoch);
  }

  size_t post(Time now, std::span<const SegmentPost> batch) override;
  size_t post_control(Time now, std::span<const ControlPost> batch) override;
  size_t poll(Time now, size_t budget, FabricSink& sink) override;
  std::span<const int> wait_descriptors() const override { return {}; }

 private:
  static constexpr size_t kBatch = 64;

  Host& state() const { return network_.state(number_); }
  // Each takes a run of equal items off the front of the inbox and hands it to the sink.
  void deliver_datagrams(size_t count, FabricSink& sink);
  void deliver_landings(size_t count, FabricSink& sink);
  void deliver_completions(size_t count, FabricSink& sink);
  void deliver_changes(size_t count, FabricSink& sink);

  SimNetwork& network_;
  int number_;
};

}  // namespace weft::sim
