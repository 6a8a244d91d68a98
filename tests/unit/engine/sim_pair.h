// SPDX-License-Identifier: Apache-2.0
// Two engines over the two hosts of a simulated network, with one connection between them and a
// virtual clock: what the tests of this folder drive.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "multipath/engine/engine.h"
#include "transport/sim/network.h"

namespace weft::test {

class SimPair {
 public:
  explicit SimPair(const sim::SimConfig& config, uint64_t seed = 1) : network_(config, seed) {
    for (int i = 0; i < 2; ++i) engine_[i] = std::make_unique<Engine>(network_.host(i));
    member_ = connect();
  }

  // One more connection; its two ends.
  std::array<Member*, 2> connect() {
    std::array<Member*, 2> member;
    std::array<LinkAddress, 2> address;
    std::array<LinkId, 2> link;
    for (int i = 0; i < 2; ++i) {
      member[i] = engine_[i]->reserve(1000 + next_token_++);
      Result<LinkId> made = network_.host(i).create_link(&address[i]);
      EXPECT_TRUE(made.ok()) << made.status().words();
      link[i] = *made;
    }
    for (int i = 0; i < 2; ++i) {
      Fabric& fabric = network_.host(i);
      const Status status = fabric.connect_link(link[i], address[1 - i]);
      EXPECT_TRUE(status.ok()) << status.words();
      ConnectionConfig c;
      c.offloads = fabric.offloads();
      c.peer = member[1 - i]->own;
      c.paths = fabric.paths(link[i]);
      c.segment_bytes = c.peer_segment_bytes = fabric.max_segment_bytes();
      c.seed = 7 + static_cast<uint64_t>(i);
      engine_[i]->attach(*member[i], link[i], c);
    }
    return member;
  }

  Engine& engine(int i) { return *engine_[i]; }
  Member& member(int i) { return *member_[i]; }
  sim::SimNetwork& network() { return network_; }

  // A flow from host 0 to host 1 of a connection.
  void open_flow(const std::array<Member*, 2>& member, std::unique_ptr<SendFlow>* send,
                 std::unique_ptr<ReceiveFlow>* receive) {
    *receive = engine_[1]->open_receive_flow(*member[1]);
    ASSERT_TRUE(*receive);
    *send = engine_[0]->open_send_flow(*member[0], (*receive)->id());
    ASSERT_TRUE(*send);
  }
  void open_flow(std::unique_ptr<SendFlow>* send, std::unique_ptr<ReceiveFlow>* receive) {
    open_flow(member_, send, receive);
  }

  // Moves virtual time on, from event to event, until `until` says true. False: it did not within
  // `limit`.
  bool run(const std::function<bool()>& until, Duration limit = seconds(30)) {
    const Time end = network_.now() + limit;
    for (;;) {
      for (auto& engine : engine_) engine->progress(network_.now());
      if (until()) return true;
      Time next = network_.next_event();
      for (auto& engine : engine_) next = earlier(next, engine->poll_timeout());
      if (next > end) return false;
      network_.advance_to(std::max(next, network_.now() + nanoseconds(1)));
    }
  }

  std::array<Member*, 2> member_{};

 private:
  sim::SimNetwork network_;
  std::array<std::unique_ptr<Engine>, 2> engine_;
  uint64_t next_token_ = 0;
};

inline bool done(const Request* request) {
  return request->state.load(std::memory_order_acquire) == Request::State::kDone;
}
inline bool failed(const Request* request) {
  return request->state.load(std::memory_order_acquire) == Request::State::kFailed;
}

inline std::vector<std::byte> pattern(size_t bytes, uint64_t seed) {
  std::vector<std::byte> out(bytes);
  Random random(seed);
  for (auto& b : out) b = static_cast<std::byte>(random.next());
  return out;
}

}  // namespace weft::test
