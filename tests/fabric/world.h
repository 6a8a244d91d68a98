// SPDX-License-Identifier: Apache-2.0
// What the contract suite needs of a fabric under test: two hosts that can reach each other, and
// time.
//
// A kind of world is a name and a way to make one; kinds() lists all. Worlds lose nothing, as far
// as that lies with them: what a connection does about losses is not a fabric's contract.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "transport/base/random.h"
#include "transport/fabric.h"

namespace weft::contract {

class World {
 public:
  virtual ~World() = default;
  // 0 or 1; lives as long as the world.
  virtual Fabric& fabric(int side) = 0;
  virtual Time now() = 0;
  // A little: real fabrics sleep, simulated ones advance their clock.
  virtual void pass_time() = 0;
  // Sends garbage to a host from outside, where a stranger can: `address` is one of its links'.
  // Returns how many datagrams; 0 where no stranger can reach it.
  virtual size_t throw_garbage(const LinkAddress& address, Random& random) {
    (void)address, (void)random;
    return 0;
  }
  // What the fabric saw its caller do against the contract; empty if nothing.
  virtual std::string misuse() { return {}; }
};

struct WorldKind {
  const char* name;
  std::unique_ptr<World> (*make)(uint64_t seed);
  // What it is, so that a case is instantiated only where it has something to prove.
  // Setup.IsOfTheKindItIsListedAs holds the list to it.
  bool places = false;
  bool ordered = false;
  bool wakes = false;    // has descriptors to wait on
  bool exposed = false;  // strangers can send to it
};

inline std::ostream& operator<<(std::ostream& out, const WorldKind& kind) {
  return out << kind.name;
}

const std::vector<WorldKind>& kinds();
std::vector<WorldKind> kinds_that(bool (*are)(const WorldKind&));

std::unique_ptr<World> make_udp(uint64_t seed);
std::unique_ptr<World> make_udp_uneven(uint64_t seed);
std::unique_ptr<World> make_udp_large(uint64_t seed);
std::unique_ptr<World> make_udp_ipv6(uint64_t seed);
std::unique_ptr<World> make_udp_ipv6_plain(uint64_t seed);
std::unique_ptr<World> make_udp_no_gso(uint64_t seed);
std::unique_ptr<World> make_udp_no_gro(uint64_t seed);
std::unique_ptr<World> make_udp_plain(uint64_t seed);
std::unique_ptr<World> make_sim_datagram(uint64_t seed);
std::unique_ptr<World> make_sim_placing(uint64_t seed);
std::unique_ptr<World> make_sim_reliable(uint64_t seed);

}  // namespace weft::contract
