// SPDX-License-Identifier: Apache-2.0
// What it costs to be connected: nothing grows with cycles, idle communicators leave the processor
// alone, and the half of all connections that never carries a byte costs next to nothing.
//
// What is asserted is CPU time, bytes and descriptors, never how long something took. The figures
// of the last test are the README's; it prints them.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "tests/plugin/holdings.h"
#include "tests/plugin/net.h"

namespace weft::plugin_test {
namespace {

constexpr int kCycles = 1000;
// What the C library may hold back, and what is bounded and fills: a connection's four tables of
// flows (8 bytes for each of at most 16,384 ids, which go round) and its memory of requests (8
// bytes for each of the latest 8,192). A hundred bytes a cycle would show.
constexpr size_t kHeapSlack = 96 << 10;
constexpr int kCommunicators = 16;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void transfer(Pair& pair, size_t bytes) {
  Buffer from(bytes), to(bytes);
  Registered source(pair.send(), from), sink(pair.receive(), to);
  void* receive = post_receive(pair.receive(), to.data(), bytes, 0, sink.get());
  void* send = post_send(pair.send(), from.data(), bytes, 0, source.get());
  ASSERT_EQ(wait(receive), nccl::kSuccess) << take_log();
  ASSERT_EQ(wait(send), nccl::kSuccess) << take_log();
}

// `cycle` a thousand times after a few to warm up; nothing may grow.
template <class Cycle>
void expect_no_growth(Cycle&& cycle) {
  constexpr int kWarmUp = 100;
  int descriptors = 0;
  size_t heap = 0;
  for (int i = 0; i < kWarmUp + kCycles; ++i) {
    if (i == kWarmUp) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      descriptors = open_descriptors();
      heap = heap_bytes();
    }
    ASSERT_NO_FATAL_FAILURE(cycle(i)) << "cycle " << i;
  }
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= descriptors; }, 5000))
      << open_descriptors() << " descriptors, " << descriptors << " before";
  EXPECT_TRUE(eventually([&] { return heap_bytes() <= heap + kHeapSlack; }, 5000))
      << heap_bytes() << " bytes of heap, " << heap << " before";
}

TEST(PluginCosts, AThousandConnectionsOfACommunicatorLeaveNothing) {
  Context context;
  Pair lasting(context, context);
  transfer(lasting, 64 << 20);  // every path has its memory then
  expect_no_growth([&](int i) {
    Pair pair(context, context);
    ASSERT_TRUE(pair.up());
    if (i % 10 == 0) transfer(pair, 100'000);
    if (i % 2 == 0) pair.close_receive();
  });
  transfer(lasting, 100'000);
}

TEST(PluginCosts, AThousandCommunicatorsLeaveNothing) {
  Context lasting;
  Pair bystander(lasting, lasting);
  transfer(bystander, 64 << 20);
  expect_no_growth([&](int i) {
    Context one, other;
    Pair pair(one, other);
    ASSERT_TRUE(pair.up());
    if (i % 10 == 0) transfer(pair, 100'000);
  });
  transfer(bystander, 100'000);
}

// Versions without contexts end and begin anew with every last close.
TEST(PluginCosts, AHundredBeginningsAndEndsOfEverythingLeaveNothing) {
  int descriptors = 0;
  size_t heap = 0;
  for (int i = 0; i < 110; ++i) {
    {
      Context context;
      Pair pair(context, context);
      ASSERT_TRUE(pair.up());
      transfer(pair, 100'000);
    }
    if (i != 9) continue;
    descriptors = open_descriptors();
    heap = heap_bytes();
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LE(heap_bytes(), heap + kHeapSlack);
}

struct Communicator {
  Context context;
  std::vector<std::unique_ptr<Pair>> pairs;
  std::unique_ptr<Buffer> memory;
  std::vector<std::unique_ptr<Registered>> registrations;
};

// Idle as NCCL leaves them: all data done, memory registered, in every second a receive still
// posted.
TEST(PluginCosts, SixteenIdleCommunicatorsLeaveTheProcessorAlone) {
  std::vector<std::unique_ptr<Communicator>> all;
  for (int i = 0; i < kCommunicators; ++i) {
    all.push_back(std::make_unique<Communicator>());
    Communicator& c = *all.back();
    c.memory = std::make_unique<Buffer>(1 << 20);
    for (int k = 0; k < 4; ++k) {
      c.pairs.push_back(std::make_unique<Pair>(c.context, c.context));
      ASSERT_TRUE(c.pairs.back()->up());
      transfer(*c.pairs.back(), 200'000);
    }
    void* comm = c.pairs[0]->receive();
    c.registrations.push_back(std::make_unique<Registered>(comm, *c.memory));
    if (i % 2 == 0) {
      post_receive(comm, c.memory->data(), 4096, 0, c.registrations.back()->get());
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  constexpr int kWatchMs = 3000;
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(kWatchMs));
  const double share = (cpu_seconds() - before) * 1000 / kWatchMs;
  std::printf("%d idle communicators with 64 connections: %.3f%% of a core\n", kCommunicators,
              100 * share);
  EXPECT_LT(share, 0.01);
}

// Both ends are in this process, and are counted together.
TEST(PluginCosts, AConnectionThatNeverCarriesAByteCostsNextToNothing) {
  constexpr int kConnections = 100;
  Context context, other;
  Pair first(context, other);
  ASSERT_TRUE(first.up());
  transfer(first, 100'000);
  std::vector<std::unique_ptr<Pair>> pairs;
  pairs.reserve(kConnections);
  const int descriptors = open_descriptors();
  const size_t heap = heap_bytes();
  for (int i = 0; i < kConnections; ++i) {
    pairs.push_back(std::make_unique<Pair>(context, other));
    ASSERT_TRUE(pairs.back()->up());
  }
  const size_t bytes = (heap_bytes() - heap) / kConnections;
  std::printf("a connection that never carries a byte: %zu bytes and %d descriptors, both ends\n",
              bytes, (open_descriptors() - descriptors) / kConnections);
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LT(bytes, 64u << 10);
}

TEST(PluginCosts, ACommunicatorThatNeverCarriesAByteCostsLittle) {
  WEFT_NEEDS_CONTEXTS();
  constexpr int kEach = 20;
  Context lasting;
  Pair first(lasting, lasting);
  const int descriptors = open_descriptors();
  const size_t heap = heap_bytes();
  std::vector<std::unique_ptr<Communicator>> all;
  for (int i = 0; i < kEach; ++i) {
    all.push_back(std::make_unique<Communicator>());
    all.back()->pairs.push_back(std::make_unique<Pair>(all.back()->context, all.back()->context));
    ASSERT_TRUE(all.back()->pairs.back()->up());
  }
  const size_t bytes = (heap_bytes() - heap) / kEach;
  const int opened = (open_descriptors() - descriptors) / kEach;
  std::printf(
      "the first connection of a communicator to a peer: %zu bytes and %d descriptors, both "
      "ends\n",
      bytes, opened);
  EXPECT_LE(opened, 2);
  EXPECT_LT(bytes, 4u << 20);
}

}  // namespace
}  // namespace weft::plugin_test
