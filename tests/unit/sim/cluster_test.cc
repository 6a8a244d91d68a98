// SPDX-License-Identifier: Apache-2.0
// The parts of a simulated cluster keep their promises: cables their speed, queues their room,
// switches their ways.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "transport/sim/cluster/cluster.h"

namespace weft::sim {
namespace {

struct Sink : Actor {
  void wake(Time now, void* what) override { arrived.emplace_back(now, static_cast<Frame*>(what)); }
  std::vector<std::pair<Time, Frame*>> arrived;
};

class PortTest : public testing::Test {
 protected:
  PortTest() {
    config_.bits_per_second = 100'000'000'000;
    config_.delay = microseconds(1);
    config_.queue_bytes = 10'000;
  }
  Port make() { return Port(scheduler_, frames_, random_, config_, sink_); }
  Frame& frame(uint32_t bytes, bool control = false) {
    Frame* f = frames_.take();
    f->wire_bytes = bytes;
    f->control = control;
    return *f;
  }
  // Sends so many frames of 1,000 bytes at one moment; how many arrived by the end.
  size_t flood(Port& port, int count) {
    for (int i = 0; i < count; ++i) port.send(scheduler_.now(), frame(1000));
    scheduler_.advance_to(scheduler_.now() + seconds(1));
    return sink_.arrived.size();
  }

  Scheduler scheduler_;
  FrameStore frames_;
  Random random_{1};
  PortConfig config_;
  Sink sink_;
};

TEST_F(PortTest, SendsAtItsSpeedAndOneAfterTheOther) {
  Port port = make();
  EXPECT_EQ(flood(port, 10), 10u);
  for (size_t i = 0; i < 10; ++i)  // 80 ns a frame
    EXPECT_EQ(sink_.arrived[i].first, Time{1000 + 80 * static_cast<int64_t>(i + 1)}) << i;
}

TEST_F(PortTest, FractionsOfANanosecondAreNotLost) {
  config_.bits_per_second = 400'000'000'000;
  config_.queue_bytes = 1 << 30;
  Port port = make();
  for (int i = 0; i < 10'000; ++i) port.send(Time{}, frame(4160));
  scheduler_.advance_to(Time{} + seconds(1));
  EXPECT_EQ(sink_.arrived.back().first, Time{1000 + 832'000});  // 83.2 ns a frame
}

TEST_F(PortTest, DropsWhatFindsNoRoomAndGivesItBack) {
  Port port = make();
  EXPECT_EQ(flood(port, 25), 10u);
  EXPECT_EQ(port.counters().dropped, 15u);
  EXPECT_EQ(frames_.in_use(), 10u) << "what arrived is the sink's";
}

TEST_F(PortTest, ControlGoesFirstWhereItShould) {
  for (const bool first : {false, true}) {
    sink_.arrived.clear();
    config_.control_first = first;
    Port port = make();
    for (int i = 0; i < 8; ++i) port.send(scheduler_.now(), frame(1000));
    port.send(scheduler_.now(), frame(100, true));
    scheduler_.advance_to(scheduler_.now() + seconds(1));
    size_t place = 0;
    while (!sink_.arrived[place].second->control) ++place;
    EXPECT_EQ(place, first ? 0u : 8u);
  }
}

TEST_F(PortTest, MarksTheMoreTheFullerItIs) {
  config_.queue_bytes = 1 << 20;
  config_.mark_from = 100'000;
  config_.mark_all = 300'000;
  Port port = make();
  ASSERT_EQ(flood(port, 500), 500u);
  std::array<int, 5> marked{};  // of each hundred
  for (size_t i = 0; i < 500; ++i) marked[i / 100] += sink_.arrived[i].second->marked;
  EXPECT_EQ(marked[0], 0);
  EXPECT_NEAR(marked[1], 25, 15);
  EXPECT_NEAR(marked[2], 75, 15);
  EXPECT_EQ(marked[3], 100);
  EXPECT_EQ(marked[4], 100);
}

TEST_F(PortTest, SuffersWhatIsSaidAndWhenItIsSaid) {
  Port port = make();
  port.add_fault({CableFault::What::kSilent, 0, Time{} + seconds(2), Time{} + seconds(4)});
  EXPECT_EQ(flood(port, 5), 5u);
  scheduler_.advance_to(Time{} + seconds(2));
  EXPECT_EQ(flood(port, 5), 5u);
  EXPECT_EQ(port.counters().lost, 5u);
  scheduler_.advance_to(Time{} + seconds(4));
  EXPECT_EQ(flood(port, 5), 10u);
  port.add_fault({CableFault::What::kSlow, 0.25, scheduler_.now(), Time::never()});
  const Time begin = scheduler_.now();
  flood(port, 2);
  EXPECT_EQ(sink_.arrived.back().first - begin, nanoseconds(1000 + 2 * 320));
}

// Every host reaches every other, over all ways that there are, and no farther than it must.
struct Shape {
  const char* name;
  TopologyConfig config;
  size_t cables;  // both directions
};

class EveryShape : public testing::TestWithParam<Shape> {};

TEST_P(EveryShape, JoinsAllHostsByAllItsCables) {
  ClusterConfig config;
  config.topology = GetParam().config;
  config.paths = 64;
  std::string why;
  Cluster cluster(config, 5, &why);
  ASSERT_EQ(why, "");
  EXPECT_EQ(cluster.topology().cables.size(), GetParam().cables);
  std::map<HostIndex, uint64_t> got;
  const auto hosts = static_cast<HostIndex>(cluster.hosts());
  for (HostIndex from = 0; from < hosts; ++from) {
    for (HostIndex to = 0; to < hosts; ++to) {
      for (uint32_t entropy = 0; from != to && entropy < 64; ++entropy) {
        Frame* frame = cluster.frames().take();
        *frame = Frame{};
        frame->from = from, frame->to = to, frame->wire_bytes = 100;
        frame->entropy = entropy * 7919 + to;
        frame->control = true;
        cluster.nic(from).control(cluster.scheduler().now(), *frame);
      }
    }
    cluster.scheduler().advance_to(cluster.scheduler().now() + seconds(1));
  }
  for (HostIndex to = 0; to < hosts; ++to) {
    ASSERT_EQ(cluster.nic(to).inbox().size(), 64u * (hosts - 1)) << "host " << to;
    for (const Frame* frame : cluster.nic(to).inbox()) EXPECT_EQ(frame->to, to);
  }
  for (const Topology::Cable& cable : cluster.topology().cables)
    EXPECT_GT(cable.port->counters().frames, 0u) << cable.name << " carries nothing";
}

TopologyConfig make(TopologyConfig::Shape kind, uint32_t hosts, uint32_t per_leaf,
                     uint32_t spines) {
  TopologyConfig c;
  c.shape = kind;
  c.hosts = hosts;
  c.hosts_per_leaf = per_leaf;
  c.spines = spines;
  c.rails = 4;
  c.leaves_per_pod = c.aggregations_per_pod = c.cores_per_aggregation = 2;
  return c;
}

using Kind = TopologyConfig::Shape;
INSTANTIATE_TEST_SUITE_P(
    Shapes, EveryShape,
    testing::Values(Shape{"two_hosts", make(Kind::kTwoHosts, 2, 1, 5), 2 * (2 + 2 * 5)},
                    Shape{"leaf_spine", make(Kind::kLeafSpine, 12, 4, 3), 2 * (12 + 3 * 3)},
                    Shape{"rail", make(Kind::kRail, 16, 2, 2), 2 * (16 + 8 * 2)},
                    Shape{"fat_tree", make(Kind::kFatTree, 16, 2, 0), 2 * (16 + 8 * 2 + 8 * 2)}),
    [](const auto& shape) { return std::string(shape.param.name); });

TEST(Topology, RefusesNumbersThatDoNotFit) {
  const auto refused = [](TopologyConfig topology) {
    ClusterConfig config;
    config.topology = topology;
    std::string why;
    Cluster cluster(config, 1, &why);
    return why;
  };
  EXPECT_NE(refused(make(Kind::kLeafSpine, 13, 4, 3)), "");
  EXPECT_NE(refused(make(Kind::kLeafSpine, 12, 4, 0)), "");
  EXPECT_NE(refused(make(Kind::kTwoHosts, 3, 1, 1)), "");
  EXPECT_NE(refused(make(Kind::kFatTree, 1, 1, 1)), "");
}

}  // namespace
}  // namespace weft::sim
