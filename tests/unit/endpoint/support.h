// SPDX-License-Identifier: Apache-2.0
// Endpoints over UDP on loopback, and the polling loops that every test of this folder needs. All
// bounded.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "multipath/endpoint/endpoint.h"
#include "transport/udp/udp.h"

namespace weft::test {

struct Knobs {
  Duration peer_timeout = seconds(10);
  ProgressMode progress = ProgressMode::kCaller;
  uint32_t device = 0;
  int sockets = 8;
  uint32_t segment_bytes = 0;
  uint32_t mtu = 65536;
  bool probe_sizes = false;
  IpAddress address = IpAddress::v4(127, 0, 0, 1);
};

std::unique_ptr<Endpoint> open_endpoint(const Knobs& knobs = {});

// Calls `step` until it says true, yielding between; false after a generous while.
bool poll_until(const std::function<bool()>& step);

struct Pair {
  SendFlow* send = nullptr;
  ReceiveFlow* receive = nullptr;
};
// A flow from `from` to `to`, made as NCCL makes it: listen, then connect and accept polled in
// turn.
Pair connect(Endpoint& from, Endpoint& to, uint64_t from_context = 1, uint64_t to_context = 1,
             int32_t traffic_class = 0);

// Test until done; the status of the last test.
Status wait(Endpoint& endpoint, Request* request, uint64_t* sizes = nullptr);
// Send until it is posted; null when it failed.
Request* post_send(Endpoint& endpoint, SendFlow* flow, const std::byte* data, uint64_t bytes,
                   const Registration* registration, int32_t tag = 0);
Request* post_receive(Endpoint& endpoint, ReceiveFlow* flow, std::byte* data, uint64_t bytes,
                      const Registration* registration, int32_t tag = 0);

std::vector<std::byte> pattern(size_t bytes, uint64_t seed);
// One message of `bytes` over a fresh registration on each side, verified.
void transfer(Endpoint& from, Endpoint& to, const Pair& flow, size_t bytes);

int open_descriptors();

}  // namespace weft::test
