// SPDX-License-Identifier: Apache-2.0
// Runs of the shipping engine in simulated clusters: what one flow gets alone is what arithmetic
// and others' simulators say, bytes are right, a seed is a trace.
#include "tools/sim/run.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tools/sim/permutation.h"
#include "tools/sim/scenario.h"

namespace weft::simtool {
namespace {

Scenario scenario(const std::string& name) {
  std::string why;
  const auto s =
      load_scenario(std::string(std::getenv("WEFT_SCENARIOS")) + "/" + name + ".toml", &why);
  EXPECT_TRUE(s) << why;
  return s.value_or(Scenario{});
}

RunConfig alone(const Scenario& s) {
  RunConfig c;
  c.cluster.topology = s.topology;
  c.transfers = {{0, s.topology.hosts - 1, s.bytes, {}}};
  return c;
}

class Alone : public testing::TestWithParam<const char*> {};

TEST_P(Alone, AFlowTakesWhatTheReferenceSimulatorSays) {
  const Scenario s = scenario(GetParam());
  RunConfig c = alone(s);
  c.cluster.carry = true;
  const RunResult result = run(c);
  EXPECT_EQ(result.fault, "");
  EXPECT_NEAR(static_cast<double>(result.slowest.ns) / 1e3, s.reference.at("ideal"),
              s.reference.at("ideal") * 0.01);
  EXPECT_EQ(result.retransmitted, 0u);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Alone, testing::Values("A", "C", "D"));

TEST(Permutation, IsTheOneOfThePublishedFigures) {
  const std::vector<uint32_t> one = permutation(128, 1);
  EXPECT_EQ((std::vector(one.begin(), one.begin() + 5)),
            (std::vector<uint32_t>{127, 43, 66, 85, 15}));
  const std::vector<uint32_t> five = permutation(128, 5);
  EXPECT_EQ((std::vector(five.end() - 3, five.end())), (std::vector<uint32_t>{89, 118, 70}));
}

// A small cluster with everybody sending, in both kinds of fabric.
RunConfig small(bool placing, uint64_t seed) {
  RunConfig c;
  c.cluster.topology.shape = sim::TopologyConfig::Shape::kLeafSpine;
  c.cluster.topology.hosts = 16;
  c.cluster.topology.hosts_per_leaf = 4;
  c.cluster.topology.spines = 4;
  c.cluster.placing = placing;
  c.cluster.carry = true;
  c.cluster.paths = 32;
  c.seed = seed;
  const auto to = permutation(16, static_cast<uint32_t>(seed));
  for (uint32_t from = 0; from < 16; ++from) c.transfers.push_back({from, to[from], 300'001, {}});
  return c;
}

TEST(Run, EveryByteIsRightAndTheSameSeedIsTheSameTrace) {
  for (const bool placing : {false, true}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const RunResult first = run(small(placing, seed));
      EXPECT_EQ(first.fault, "") << "placing " << placing << ", seed " << seed;
      EXPECT_EQ(run(small(placing, seed)).trace_hash, first.trace_hash);
      EXPECT_NE(run(small(placing, seed + 10)).trace_hash, first.trace_hash);
    }
  }
}

TEST(Run, SurvivesALossyCableAndASilentOne) {
  for (const bool placing : {false, true}) {
    RunConfig c = small(placing, 2);
    c.faults = {{"leaf0-spine1", {sim::CableFault::What::kLossy, 0.05, Time{}, Time::never()}},
                {"spine2-leaf3", {sim::CableFault::What::kSilent, 0, Time{20'000}, Time::never()}}};
    const RunResult result = run(c);
    EXPECT_EQ(result.fault, "") << "placing " << placing;
    EXPECT_GT(result.retransmitted, 0u);
  }
}

TEST(Run, SaysWhatDoesNotEnd) {
  RunConfig c = small(false, 1);
  c.faults = {{"leaf0-host0", {sim::CableFault::What::kSilent, 0, Time{}, Time::never()}}};
  c.limit = milliseconds(5);
  EXPECT_NE(run(c).fault.find("were not done after 5000 us"), std::string::npos) << run(c).fault;
  c.faults[0].cable = "leaf9-host0";
  EXPECT_EQ(run(c).fault, "no cable is called 'leaf9-host0'");
}

}  // namespace
}  // namespace weft::simtool
