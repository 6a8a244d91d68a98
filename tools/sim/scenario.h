// SPDX-License-Identifier: Apache-2.0
// A scenario: a network, what goes wrong in it, and who sends what to whom, from a TOML file
// (bench/scenarios has examples; README of that folder says what may stand in one). It says nothing
// of laws, selectors, segments: those are the product's, not the scenario's.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/sim/run.h"

namespace weft::simtool {

struct Scenario {
  std::string name;  // of the file
  std::string title;
  sim::TopologyConfig topology;
  uint64_t mark_from = 0, mark_all = 0;  // ECN, for who asks for it
  std::vector<NamedFault> faults;
  enum class Traffic { kPair, kPermutation, kIncast } traffic = Traffic::kPermutation;
  uint32_t senders = 0;  // incast
  uint64_t bytes = 0;
  std::map<std::string, double> reference;  // figures from elsewhere, by name

  // The same for every seed, but for permutations.
  std::vector<Transfer> transfers(uint32_t seed) const;
};

// Null, with words in `why`, when the file is not a scenario.
std::optional<Scenario> load_scenario(const std::string& file, std::string* why);

}  // namespace weft::simtool
