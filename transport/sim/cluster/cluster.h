// SPDX-License-Identifier: Apache-2.0
// A simulated cluster: hosts, each of which sees it as a Fabric, and the network between them, with
// queues, in virtual time. Where network.h draws at random what happens to each packet, to find
// faults of the protocol, here it follows from what all hosts send: it is for congestion.
//
//   harness                     engine of host h              cluster
//     run_until / step  ------------------------------------->  frames move; a host gets something
//       on_look(h, now) <-------------------------------------
//       engine.progress(now) --> poll, post ----------------->  NIC, switches
//
// The same configuration, seed and calls give the same events, summed up by trace_hash().
// Threading: one thread. Ownership: the cluster owns fabrics and network; registered memory must
// outlive it or be deregistered. Failure: misuse is counted in violations.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/random.h"
#include "transport/fabric.h"
#include "transport/sim/cluster/topology.h"

namespace weft::sim {

class ClusterFabric;

struct ClusterConfig {
  TopologyConfig topology;
  bool placing = false;          // writes, else datagrams
  int paths = 128;               // of a link
  uint32_t packet_bytes = 4096;  // of payload in a packet
  uint32_t header_bytes = 64;    // on the wire, beside a write's payload; a datagram has its own
  uint32_t max_segment_bytes = 4096;  // of placing fabrics: a write may be many packets
  uint64_t nic_bytes = 32768;         // a NIC takes no more than so much ahead
  bool carry = true;                  // payload is carried; else nothing is written anywhere
};

struct ClusterCounters {
  uint64_t frames = 0;      // that reached a host
  uint64_t violations = 0;  // breaches of the fabric's contract
  std::string first_violation;
};

class Cluster {
 public:
  // `why` says what is wrong with the configuration; then nothing else may be called.
  Cluster(const ClusterConfig& config, uint64_t seed, std::string* why);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  size_t hosts() const { return fabrics_.size(); }
  Fabric& host(HostIndex host);
  const ClusterConfig& config() const { return config_; }

  // Called when a host should look at its fabric: something has come, or there is room again.
  std::function<void(HostIndex host, Time now)> on_look;

  Scheduler& scheduler() { return scheduler_; }
  FrameStore& frames() { return frames_; }
  Random& random() { return random_; }
  Topology& topology() { return topology_; }
  Nic& nic(HostIndex host) { return *nics_[host]; }
  ClusterFabric& fabric(HostIndex host) { return *fabrics_[host]; }

  void count_arrival(Time now, const Frame& frame);
  void violation(HostIndex host, const char* what);
  const ClusterCounters& counters() const { return counters_; }
  uint64_t trace_hash() const { return hash_; }

 private:
  ClusterConfig config_;
  Random random_;
  Scheduler scheduler_;
  FrameStore frames_;
  std::vector<std::unique_ptr<Nic>> nics_;
  std::vector<std::unique_ptr<ClusterFabric>> fabrics_;
  Topology topology_;
  ClusterCounters counters_;
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace weft::sim
