// SPDX-License-Identifier: Apache-2.0
// A switch: looks up where a host lies, and where several ports lead there, chooses one by a hash
// of what the frame says and of the switch (ECMP). Forwarding itself takes no time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/sim/cluster/port.h"

namespace weft::sim {

class Switch final : public Actor {
 public:
  explicit Switch(uint64_t salt) : salt_(salt) {}

  Port& add_port(std::unique_ptr<Port> port) {
    ports_.push_back(std::move(port));
    return *ports_.back();
  }
  size_t ports() const { return ports_.size(); }
  Port& port(size_t index) { return *ports_[index]; }

  // Frames to hosts [first, last] leave by one of these ports. What is said later holds.
  void add_route(HostIndex first, HostIndex last, std::vector<uint16_t> ports) {
    routes_.push_back(std::move(ports));
    if (route_of_.size() <= last) route_of_.resize(last + 1, kNone);
    for (HostIndex h = first; h <= last; ++h)
      route_of_[h] = static_cast<uint32_t>(routes_.size() - 1);
  }

  // Precondition: there is a way to where the frame goes, as in every topology that is built here.
  void wake(Time now, void* what) override {
    auto& frame = *static_cast<Frame*>(what);
    const std::vector<uint16_t>& ports = routes_[route_of_[frame.to]];
    const size_t choice = ports.size() == 1 ? 0 : hash(frame) % ports.size();
    ports_[ports[choice]]->send(now, frame);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint64_t hash(const Frame& frame) const {
    uint64_t z = salt_ ^ (uint64_t{frame.entropy} << 32 | frame.from) ^
                 uint64_t { frame.to } * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) >> 8;
  }

  const uint64_t salt_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<std::vector<uint16_t>> routes_;
  std::vector<uint32_t> route_of_;  // by host
};

}  // namespace weft::sim
