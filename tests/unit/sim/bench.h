// SPDX-License-Identifier: Apache-2.0
// Two hosts of a simulated network, connected, with a sink each that writes down what it hears.
// Memory of each host is one registered buffer.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "transport/sim/network.h"

namespace weft::sim {

// In the order in which poll delivered it.
struct Heard {
  enum class Kind { kDatagram, kLanding, kCompletion, kPathChange };
  Kind kind;
  std::vector<std::byte> bytes;
  Landing landing;
  Completion completion;
  PathChange change;
};

class ListeningSink final : public FabricSink {
 public:
  std::vector<Heard> heard;
  // Where payload after `header_bytes` of a datagram goes; null: nowhere.
  std::byte* destination = nullptr;
  uint32_t header_bytes = 0;
  size_t largest_batch = 0;

  void receive(std::span<Datagram> batch) override {
    largest_batch = std::max(largest_batch, batch.size());
    for (Datagram& d : batch) d.destination = destination, d.header_bytes = header_bytes;
  }
  void arrived(std::span<const Datagram> batch) override {
    for (const Datagram& d : batch) {
      heard.push_back({Heard::Kind::kDatagram, {d.bytes, d.bytes + d.size}, {}, {}, {}});
    }
  }
  void landed(std::span<const Landing> batch) override {
    for (const Landing& l : batch) heard.push_back({Heard::Kind::kLanding, {}, l, {}, {}});
  }
  void completed(std::span<const Completion> batch) override {
    for (const Completion& c : batch) heard.push_back({Heard::Kind::kCompletion, {}, {}, c, {}});
  }
  void path_changed(std::span<const PathChange> batch) override {
    for (const PathChange& c : batch) heard.push_back({Heard::Kind::kPathChange, {}, {}, {}, c});
  }

  size_t count(Heard::Kind kind) const {
    size_t n = 0;
    for (const Heard& h : heard) n += h.kind == kind;
    return n;
  }
  std::vector<uint32_t> immediates() const {
    std::vector<uint32_t> out;
    for (const Heard& h : heard) {
      if (h.kind == Heard::Kind::kLanding) out.push_back(h.landing.immediate);
    }
    return out;
  }
};

struct Bench {
  static constexpr size_t kMemory = 1 << 20;

  explicit Bench(const SimConfig& config, uint64_t seed = 1) : network(config, seed) {
    for (int i : {0, 1}) {
      memory[i].resize(kMemory);
      auto registered = host(i).register_memory({memory[i].data(), kMemory});
      EXPECT_TRUE(registered.ok());
      keys[i] = *registered;
      auto made = host(i).create_link(&address[i]);
      EXPECT_TRUE(made.ok());
      link[i] = *made;
    }
    for (int i : {0, 1}) {
      const Status connected = host(i).connect_link(link[i], address[1 - i]);
      EXPECT_TRUE(connected.ok()) << connected.words();
    }
  }

  Fabric& host(int i) { return network.host(i); }

  // From host 0's memory into host 1's, at the same offset.
  SegmentPost write(size_t offset, uint32_t bytes, PathIndex path = 0, uint32_t immediate = 0,
                    uint32_t epoch = 0) {
    SegmentPost p{};
    p.source = bytes == 0 ? nullptr : memory[0].data() + offset;
    p.bytes = bytes;
    p.link = link[0];
    p.path = path;
    p.local_key = keys[0].local;
    p.epoch = epoch;
    p.immediate = immediate;
    p.remote_address = reinterpret_cast<uint64_t>(memory[1].data() + offset);
    p.remote_key = keys[1].remote;
    p.cookie = 1000 + immediate;
    return p;
  }
  // A datagram whose header is its number.
  SegmentPost datagram(uint32_t number, uint32_t bytes = 0, PathIndex path = 0) {
    SegmentPost p = write(0, bytes, path);
    p.header_bytes = 4;
    std::memcpy(p.header.data(), &number, 4);
    return p;
  }
  ControlPost control(uint32_t number, PathIndex path = 0) {
    ControlPost p{};
    p.link = link[0];
    p.path = path;
    p.bytes = 4;
    std::memcpy(p.data.data(), &number, 4);
    return p;
  }
  size_t post(const SegmentPost& p) { return host(0).post(network.now(), {&p, 1}); }
  size_t post(const ControlPost& p) { return host(0).post_control(network.now(), {&p, 1}); }

  void poll(int i) { host(i).poll(network.now(), SIZE_MAX, sink[i]); }
  // Until nothing is under way.
  void settle() {
    for (int i = 0; i < 1000000 && network.next_event() != Time::never(); ++i) {
      network.advance_to(network.next_event());
    }
    poll(0);
    poll(1);
  }

  SimNetwork network;
  std::vector<std::byte> memory[2];
  MemoryKeys keys[2];
  LinkAddress address[2];
  LinkId link[2];
  ListeningSink sink[2];
};

inline uint32_t number_in(const Heard& h) {
  uint32_t n = 0;
  if (h.bytes.size() >= 4) std::memcpy(&n, h.bytes.data(), 4);
  return n;
}

inline SimConfig placing() {
  SimConfig c;
  c.mode = Mode::kPlacing;
  c.max_in_flight = kMaxPackets;
  return c;
}

}  // namespace weft::sim
