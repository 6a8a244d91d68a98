// SPDX-License-Identifier: Apache-2.0
// Named networks and traffics for the seeded runs: what goes wrong in each is data, not code.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/world.h"

namespace weft::test {

struct Scenario {
  const char* name;
  sim::SimConfig network;
  Traffic traffic;
  bool clean = false;  // nothing goes wrong in it, so nothing may be sent twice
};

// All of them, by name.
const std::vector<Scenario>& scenarios();

}  // namespace weft::test
