// SPDX-License-Identifier: Apache-2.0
// Putting a cluster together; see cluster.h.
#include "transport/sim/cluster/cluster.h"

#include "transport/sim/cluster/cluster_fabric.h"

namespace weft::sim {

Cluster::Cluster(const ClusterConfig& config, uint64_t seed, std::string* why)
    : config_(config), random_(seed) {
  *why = {};
  if (config.paths < 1 || config.paths > kMaxPaths) *why = "a link has 1 to 256 paths";
  if (config.packet_bytes == 0 || config.packet_bytes % kLineBytes != 0)
    *why = "the payload of a packet is a multiple of 128";
  if (!why->empty()) return;
  std::vector<NicOwner*> owners;
  for (HostIndex h = 0; h < config.topology.hosts; ++h) {
    nics_.push_back(std::make_unique<Nic>(scheduler_, frames_, h, config.nic_bytes));
    fabrics_.push_back(std::make_unique<ClusterFabric>(*this, h));
    owners.push_back(fabrics_.back().get());
  }
  *why = build_topology(config_.topology, random_.next(), scheduler_, frames_, random_, nics_,
                        owners, &topology_);
}

Cluster::~Cluster() = default;

Fabric& Cluster::host(HostIndex host) { return *fabrics_[host]; }

void Cluster::count_arrival(Time now, const Frame& frame) {
  ++counters_.frames;
  for (const uint64_t value : {static_cast<uint64_t>(now.ns), uint64_t{frame.from} << 32 | frame.to,
                               uint64_t{frame.entropy} << 32 | frame.wire_bytes}) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 29;
  }
}

void Cluster::violation(HostIndex host, const char* what) {
  if (counters_.violations++ == 0) {
    counters_.first_violation = "host " + std::to_string(host) + " at " +
                                std::to_string(scheduler_.now().ns) + " ns: " + what;
  }
}

}  // namespace weft::sim
