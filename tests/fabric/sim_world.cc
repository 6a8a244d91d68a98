// SPDX-License-Identifier: Apache-2.0
// The simulated network without faults, in each of its modes. Its NIC takes few posts a call, so
// that short counts are met.
#include "tests/fabric/world.h"
#include "transport/sim/network.h"

namespace weft::contract {
namespace {

class SimWorld final : public World {
 public:
  SimWorld(sim::Mode mode, bool reliable, uint64_t seed)
      : network_(configure(mode, reliable), seed) {}

  Fabric& fabric(int side) override { return network_.host(side); }
  Time now() override { return network_.now(); }
  void pass_time() override { network_.advance_to(network_.now() + microseconds(20)); }
  std::string misuse() override { return network_.first_violation(); }

 private:
  static sim::SimConfig configure(sim::Mode mode, bool reliable) {
    sim::SimConfig config;
    config.mode = mode;
    config.reliable = reliable;
    config.max_posts_per_call = 7;
    return config;
  }

  sim::SimNetwork network_;
};

}  // namespace

std::unique_ptr<World> make_sim_datagram(uint64_t seed) {
  return std::make_unique<SimWorld>(sim::Mode::kDatagram, false, seed);
}
std::unique_ptr<World> make_sim_placing(uint64_t seed) {
  return std::make_unique<SimWorld>(sim::Mode::kPlacing, false, seed);
}
std::unique_ptr<World> make_sim_reliable(uint64_t seed) {
  return std::make_unique<SimWorld>(sim::Mode::kPlacing, true, seed);
}

}  // namespace weft::contract
