// SPDX-License-Identifier: Apache-2.0
// NSCC in a closed loop with one bottleneck (bottleneck.h), and what it does with single acks.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "multipath/congestion/law.h"
#include "tests/unit/congestion/bottleneck.h"
#include "tests/unit/congestion/networks.h"

namespace weft {
namespace {

TEST(Nscc, FillsThePipeAndKeepsTheQueueNearItsTarget) {
  for (const Network& net : networks()) {
    SCOPED_TRACE(net.name);
    Bottleneck link(net.config);
    link.add(false);
    link.run(net.settle);
    link.count_anew();
    link.run(net.settle);
    EXPECT_GT(link.utilisation(), 0.97);
    const double target = link.flow(0).pipe->target_delay().seconds();
    EXPECT_GT(link.mean_wait(0), target * 0.4);
    EXPECT_LT(link.mean_wait(0), target * 1.6);
    // And it does not swing.
    EXPECT_LT(link.flow(0).most_window, link.flow(0).least_window * 3 / 2);
  }
}

// Who has only ever seen the queue of others would take it for the network's own length, and get
// several times as much for ever; where noise decides the target, the bound of the first base RTT
// keeps that small. On a quiet fabric it does not: there the target is the base RTT itself.
TEST(Nscc, WhoComesLateAndKnowsNothingGetsHalf) {
  for (const Network& net : networks()) {
    if (net.config.pipe.noise_floor.ns == 0) continue;
    SCOPED_TRACE(net.name);
    Bottleneck link(net.config);
    link.add(true);
    link.run(net.settle);
    link.add(false);
    link.run(net.settle * 3);
    link.count_anew();
    link.run(net.settle);
    const double ratio =
        static_cast<double>(link.flow(1).delivered) / static_cast<double>(link.flow(0).delivered);
    EXPECT_GT(ratio, 0.8);
    EXPECT_LT(ratio, 1.25);
  }
}

// A flow that never pauses never sees the empty network again.
TEST(Nscc, AQueueOfItsOwnDoesNotBecomeTheBaseRtt) {
  BottleneckConfig config = networks()[2].config;
  Bottleneck link(config);
  link.add(true);
  link.run(seconds(5));
  const Duration before = link.flow(0).pipe->base_rtt();
  link.run(seconds(25));
  EXPECT_LT(link.flow(0).pipe->base_rtt(), before * 5 / 4);
}

TEST(Nscc, EightThatStartTogetherShare) {
  for (const Network& net : networks()) {
    SCOPED_TRACE(net.name);
    Bottleneck link(net.config);
    for (int i = 0; i < 8; ++i) link.add(true);
    link.run(net.settle);
    link.count_anew();
    link.run(net.settle);
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (size_t i = 0; i < 8; ++i) {
      least = std::min(least, link.flow(i).delivered);
      most = std::max(most, link.flow(i).delivered);
    }
    EXPECT_LT(static_cast<double>(most), 1.5 * static_cast<double>(least));
    EXPECT_GT(link.utilisation(), 0.97);
  }
}

// The port of a virtual link claims more than ten times what it carries: the first window follows
// the claim, and is gone before a queue of the old size could build up twice.
TEST(Nscc, AWindowFarTooLargeIsCutAtOnce) {
  BottleneckConfig config = networks()[2].config;
  config.bytes_per_second = 25e6;
  Bottleneck link(config);
  link.add(true);
  const double right = config.bytes_per_second * 2 * config.base_rtt.seconds();
  link.run(config.base_rtt * 2);
  EXPECT_GT(static_cast<double>(link.flow(0).most_window), 20 * right) << "nothing to cut";
  link.run(config.base_rtt * 10);
  EXPECT_LT(static_cast<double>(link.flow(0).law->window()), 4 * right);
  link.run(milliseconds(100));
  link.count_anew();
  link.run(milliseconds(100));
  EXPECT_GT(link.utilisation(), 0.97);
}

TEST(Nscc, LossDoesNotMakeItCollapse) {
  for (const Network& net : networks()) {
    for (double loss : {0.01, 0.05}) {
      SCOPED_TRACE(testing::Message() << net.name << ", loss " << loss << ", seed 1");
      BottleneckConfig config = net.config;
      config.loss = loss;
      Bottleneck link(config);
      link.add(false);
      link.run(net.settle);
      link.count_anew();
      link.run(net.settle);
      EXPECT_GT(link.utilisation(), 0.95);
    }
  }
}

// A buffer of half the target overflows before the delay says anything: loss alone must do.
TEST(Nscc, AShortBufferIsUsedWithoutMuchLoss) {
  for (const Network& net : networks()) {
    SCOPED_TRACE(net.name);
    BottleneckConfig config = net.config;
    config.longest_queue = config.base_rtt / 2;
    Bottleneck link(config);
    link.add(false);
    link.run(net.settle);
    link.count_anew();
    link.run(net.settle);
    EXPECT_GT(link.utilisation(), 0.9);
    EXPECT_LT(link.lost(), 0.1);
  }
}

TEST(Nscc, WithoutRttSamplesItDoesNotMove) {
  for (const PipeConfig& config :
       {PipeConfig{}, PipeConfig{1.25e9, microseconds(25)}, PipeConfig{1e8, Duration{0}}}) {
    Pipe pipe(config);
    auto law = make_law("nscc", {2u << 20, 1408}, pipe);
    const uint64_t first = law->window();
    EXPECT_GE(first, 2u * 1408);
    Time now{1000000};
    const auto acks = [&] {
      for (int i = 0; i < 10000; ++i, now = now + microseconds(5)) {
        pipe.on_delivered(now, 1408);
        law->on_ack({now, 1408, Duration{0}, Duration{0}, false});
      }
    };
    acks();
    EXPECT_EQ(law->window(), first) << "it knows nothing of the network";
    pipe.on_sample(now, microseconds(50), false, false);
    law->on_ack({now, 1408, microseconds(50), Duration{0}, false});
    const uint64_t then = law->window();
    acks();
    EXPECT_EQ(law->window(), then) << "it hears nothing more of it";
  }
}

// Grows by how many bytes over 50 round trips at a quarter of the target.
uint64_t growth(bool marked) {
  PipeConfig config;
  config.port_bytes_per_second = 1e9;
  Pipe pipe(config);
  pipe.on_sample(Time{1}, microseconds(100), false, false);
  auto law = make_law("nscc", {64u << 20, 4096}, pipe);
  Time now{1};
  const Duration queued = pipe.target_delay() / 4;
  const auto ack = [&] {
    law->on_ack({now, 4096, microseconds(100) + queued, queued, marked});
    now = now + microseconds(4);
  };
  ack();
  const uint64_t before = law->window();
  for (int i = 0; i < 50 * 31; ++i) ack();
  EXPECT_GE(law->window(), before);
  return law->window() - before;
}

TEST(Nscc, AMarkBelowTheTargetKeepsTheWindow) {
  EXPECT_GT(growth(false), 100000u);
  EXPECT_LT(growth(true), growth(false) / 4);
}

}  // namespace
}  // namespace weft
