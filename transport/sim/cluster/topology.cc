// SPDX-License-Identifier: Apache-2.0
// Shapes as switches, cables and routes; see topology.h.
#include "transport/sim/cluster/topology.h"

#include <algorithm>

namespace weft::sim {
namespace {

class Builder {
 public:
  Builder(const TopologyConfig& config, uint64_t seed, Scheduler& scheduler, FrameStore& frames,
          Random& random, const std::vector<std::unique_ptr<Nic>>& nics,
          const std::vector<NicOwner*>& owners, Topology& out)
      : config_(config),
        seed_(seed),
        scheduler_(scheduler),
        frames_(frames),
        random_(random),
        nics_(nics),
        owners_(owners),
        out_(out) {}

  void leaf_spine(uint32_t hosts_per_leaf, uint32_t rails, uint32_t spines);
  void fat_tree();

 private:
  struct Named {
    Switch* at;
    std::string name;
  };
  Named add(const std::string& kind, uint32_t number) {
    const uint64_t salt = (seed_ + out_.switches.size() + 1) * 0x9e3779b97f4a7c15u;
    out_.switches.push_back(std::make_unique<Switch>(salt));
    return {out_.switches.back().get(), kind + std::to_string(number)};
  }
  std::unique_ptr<Port> port_to(Actor& next, const PortConfig& config, const std::string& name) {
    auto port = std::make_unique<Port>(scheduler_, frames_, random_, config, next);
    out_.cables.push_back({name, port.get()});
    return port;
  }
  // A port of `from` that leads to `to`.
  uint16_t join(const Named& from, Actor& to, const std::string& name) {
    from.at->add_port(port_to(to, config_.cable, from.name + "-" + name));
    return static_cast<uint16_t>(from.at->ports() - 1);
  }
  uint16_t join(const Named& from, const Named& to) { return join(from, *to.at, to.name); }
  void join_host(const Named& leaf, HostIndex host) {
    PortConfig own = config_.cable;  // what the host sends waits in the host
    own.queue_bytes = UINT64_MAX / 2;
    own.mark_from = own.mark_all = 0;
    const std::string name = "host" + std::to_string(host);
    nics_[host]->connect(port_to(*leaf.at, own, name + "-" + leaf.name), *owners_[host]);
    leaf.at->add_route(host, host, {join(leaf, *nics_[host], name)});
  }

  const TopologyConfig& config_;
  const uint64_t seed_;
  Scheduler& scheduler_;
  FrameStore& frames_;
  Random& random_;
  const std::vector<std::unique_ptr<Nic>>& nics_;
  const std::vector<NicOwner*>& owners_;
  Topology& out_;
};

// Hosts in groups of `rails` leaves, taking turns between those; one rail: leaf by leaf.
void Builder::leaf_spine(uint32_t hosts_per_leaf, uint32_t rails, uint32_t spines) {
  std::vector<Named> upper;
  for (uint32_t s = 0; s < spines; ++s) upper.push_back(add("spine", s));
  const uint32_t leaves = config_.hosts / hosts_per_leaf;
  for (uint32_t l = 0; l < leaves; ++l) {
    const Named leaf = add("leaf", l);
    std::vector<uint16_t> up, down;
    for (const Named& spine : upper) {
      up.push_back(join(leaf, spine));
      down.push_back(join(spine, leaf));
    }
    leaf.at->add_route(0, config_.hosts - 1, up);
    for (uint32_t i = 0; i < hosts_per_leaf; ++i) {
      const HostIndex host = (l / rails * hosts_per_leaf + i) * rails + l % rails;
      join_host(leaf, host);
      for (size_t s = 0; s < upper.size(); ++s) upper[s].at->add_route(host, host, {down[s]});
    }
  }
}

// Aggregation switch a of every pod is joined to cores [a * n, (a + 1) * n).
void Builder::fat_tree() {
  const uint32_t per_pod = config_.hosts_per_leaf * config_.leaves_per_pod;
  const uint32_t pods = config_.hosts / per_pod;
  const HostIndex last_host = config_.hosts - 1;
  std::vector<Named> cores;
  for (uint32_t c = 0; c < config_.aggregations_per_pod * config_.cores_per_aggregation; ++c) {
    cores.push_back(add("core", c));
  }
  for (uint32_t pod = 0; pod < pods; ++pod) {
    const HostIndex pod_first = pod * per_pod, pod_last = pod_first + per_pod - 1;
    std::vector<Named> aggregations;
    for (uint32_t a = 0; a < config_.aggregations_per_pod; ++a) {
      const Named agg = add("agg", pod * config_.aggregations_per_pod + a);
      aggregations.push_back(agg);
      std::vector<uint16_t> up;
      for (uint32_t c = 0; c < config_.cores_per_aggregation; ++c) {
        const Named& core = cores[a * config_.cores_per_aggregation + c];
        up.push_back(join(agg, core));
        core.at->add_route(pod_first, pod_last, {join(core, agg)});
      }
      agg.at->add_route(0, last_host, up);
    }
    for (uint32_t l = 0; l < config_.leaves_per_pod; ++l) {
      const Named leaf = add("leaf", pod * config_.leaves_per_pod + l);
      const HostIndex first = pod_first + l * config_.hosts_per_leaf;
      const HostIndex last = first + config_.hosts_per_leaf - 1;
      std::vector<uint16_t> up;
      for (const Named& agg : aggregations) {
        up.push_back(join(leaf, agg));
        agg.at->add_route(first, last, {join(agg, leaf)});
      }
      leaf.at->add_route(0, last_host, up);
      for (HostIndex host = first; host <= last; ++host) join_host(leaf, host);
    }
  }
}

std::string check(const TopologyConfig& c) {
  if (c.hosts < 2 || c.hosts > 65536) return "a cluster has 2 to 65536 hosts";
  if (c.cable.bits_per_second == 0) return "a cable needs a speed";
  using Shape = TopologyConfig::Shape;
  const bool tree = c.shape == Shape::kFatTree;
  const uint32_t leaves = tree ? c.leaves_per_pod : c.shape == Shape::kRail ? c.rails : 1;
  const uint32_t per_leaf = c.hosts_per_leaf * leaves;
  const bool even = per_leaf > 0 && c.hosts % per_leaf == 0;
  if (c.shape == Shape::kTwoHosts) {
    if (c.hosts != 2) return "two hosts are two hosts";
  } else if (!even) {
    return std::to_string(c.hosts) + " hosts do not fill groups of " + std::to_string(per_leaf);
  }
  const uint32_t ups = tree ? std::min(c.aggregations_per_pod, c.cores_per_aggregation) : c.spines;
  if (ups == 0) return "no way up: a switch needs one above it";
  const uint32_t most = std::max({c.hosts_per_leaf, c.spines, c.hosts / std::max(per_leaf, 1u)});
  if (most > 16384) return "a switch has at most 32768 ports";
  return {};
}

}  // namespace

Port* Topology::cable(const std::string& name) const {
  for (const Cable& cable : cables) {
    if (cable.name == name) return cable.port;
  }
  return nullptr;
}

std::string build_topology(const TopologyConfig& config, uint64_t seed, Scheduler& scheduler,
                           FrameStore& frames, Random& random,
                           const std::vector<std::unique_ptr<Nic>>& nics,
                           const std::vector<NicOwner*>& owners, Topology* out) {
  const std::string why = check(config);
  if (!why.empty()) return why;
  Builder builder(config, seed, scheduler, frames, random, nics, owners, *out);
  using Shape = TopologyConfig::Shape;
  switch (config.shape) {
    case Shape::kTwoHosts: builder.leaf_spine(1, 1, config.spines); break;
    case Shape::kLeafSpine: builder.leaf_spine(config.hosts_per_leaf, 1, config.spines); break;
    case Shape::kRail:
      builder.leaf_spine(config.hosts_per_leaf, config.rails, config.spines);
      break;
    case Shape::kFatTree: builder.fat_tree(); break;
  }
  return {};
}

}  // namespace weft::sim
