// SPDX-License-Identifier: Apache-2.0
// One run in a simulated cluster: transfers between hosts, each host with the engine that ships, in
// virtual time.
//
// Connections are made beforehand; receives are posted and each sender has exchanged one small
// message with its receiver, as communicators do, so at the start of a transfer grants and an empty
// network's round trip are known. A transfer takes from its start until the sender's request is
// done.
//
// Threading: one thread. The same configuration and seed give the same run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "multipath/engine/engine.h"
#include "transport/sim/cluster/cluster.h"

namespace weft::simtool {

struct Transfer {
  uint32_t from = 0, to = 0;
  uint64_t bytes = 0;
  Time start;  // after the beginning of the run
};

// Of one direction of a cable; times count from the beginning of the run.
struct NamedFault {
  std::string cable;  // topology.h has the names
  sim::CableFault fault;
};

struct RunConfig {
  sim::ClusterConfig cluster;
  std::vector<Transfer> transfers;
  std::vector<NamedFault> faults;
  std::string law = "nscc", selector = "reps";
  uint32_t segment_bytes = 0;  // 0: as the network wants it
  uint64_t seed = 1;
  Duration limit = milliseconds(100);  // of virtual time; nothing takes longer
};

struct TransferResult {
  bool done = false;
  Duration took{};
};

struct RunResult {
  std::string fault;  // empty: every transfer finished, every byte is right
  std::vector<TransferResult> transfers;
  uint64_t lost = 0, retransmitted = 0;  // as senders see it
  uint64_t dropped = 0;                  // by queues
  uint64_t frames = 0, events = 0;
  uint64_t trace_hash = 0;
  Duration slowest{}, fastest{};
};

RunResult run(const RunConfig& config);

}  // namespace weft::simtool
