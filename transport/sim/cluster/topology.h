// SPDX-License-Identifier: Apache-2.0
// Which switches there are and how they are joined, for the shapes that clusters have. All cables
// of a fabric are alike; hosts are numbered leaf by leaf.
//
//   two hosts      a leaf each, and one spine for each way
//   leaf-spine     leaves of `hosts_per_leaf`, every leaf joined to every spine
//   fat tree       pods of leaves and aggregation switches, joined by cores
//   rail           leaf-spine, where hosts are the NICs of servers, `hosts_per_leaf` servers a
//   group
//                  and `rails` NICs a server: NIC r of each server of a group lies below the
//                  group's leaf r
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/sim/cluster/nic.h"
#include "transport/sim/cluster/switch.h"

namespace weft::sim {

struct TopologyConfig {
  enum class Shape : uint8_t { kTwoHosts, kLeafSpine, kFatTree, kRail };
  Shape shape = Shape::kTwoHosts;
  uint32_t hosts = 2;
  // Leaf-spine, rail: hosts below a leaf, spines. Two hosts: spines.
  uint32_t hosts_per_leaf = 8;
  uint32_t spines = 4;
  uint32_t rails = 8;
  // Fat tree: leaves and aggregation switches of a pod; cores that an aggregation switch is joined
  // to.
  uint32_t leaves_per_pod = 4;
  uint32_t aggregations_per_pod = 4;
  uint32_t cores_per_aggregation = 4;
  PortConfig cable;
};

// The switches, and each direction of a cable by the name that faults and pictures use:
// "leaf0-spine2", "agg3-core7", "host5-leaf1".
struct Topology {
  struct Cable {
    std::string name;
    Port* port;
  };
  std::vector<std::unique_ptr<Switch>> switches;
  std::vector<Cable> cables;

  // Null when there is none of that name.
  Port* cable(const std::string& name) const;
};

// Joins `nics`, whose number is `config.hosts`. Returns what is wrong with the numbers, empty when
// nothing is.
std::string build_topology(const TopologyConfig& config, uint64_t seed, Scheduler& scheduler,
                           FrameStore& frames, Random& random,
                           const std::vector<std::unique_ptr<Nic>>& nics,
                           const std::vector<NicOwner*>& owners, Topology* out);

}  // namespace weft::sim
