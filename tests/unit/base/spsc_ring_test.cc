// SPDX-License-Identifier: Apache-2.0
// SpscRing alone and between two threads.
#include "transport/base/spsc_ring.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

#include "transport/base/random.h"

namespace weft {
namespace {

TEST(SpscRing, DoesWhatABoundedQueueDoes) {
  Random random(1);
  SpscRing<int, 8> ring;
  std::deque<int> model;
  for (int n = 0; n < 50000; ++n) {
    ASSERT_EQ(ring.full(), model.size() == 8);
    if (random.chance(0.5)) {
      ASSERT_EQ(ring.push(n), model.size() < 8);
      if (model.size() < 8) model.push_back(n);
    } else {
      int* front = ring.front();
      ASSERT_EQ(front == nullptr, model.empty());
      if (front) {
        ASSERT_EQ(*front, model.front());
        ring.pop();
        model.pop_front();
      }
    }
  }
}

// Each item carries its number twice, so that a slot read while it is written shows.
struct Pair {
  uint64_t number = 0, inverse = 0;
};

template <size_t kCapacity>
void two_threads(uint64_t items) {
  auto ring = std::make_unique<SpscRing<Pair, kCapacity>>();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto too_late = [&](uint64_t spins) {
    if (spins % 64 == 0) std::this_thread::yield();
    return spins % 4096 == 0 && std::chrono::steady_clock::now() > deadline;
  };
  bool pushed_all = true;
  std::thread producer([&] {
    uint64_t spins = 0;
    for (uint64_t i = 0; i < items; ++i) {
      while (!ring->push({i, ~i})) {
        if (too_late(++spins)) {
          pushed_all = false;
          return;
        }
      }
    }
  });
  uint64_t next = 0, wrong = 0, spins = 0;
  while (next < items) {
    Pair* p = ring->front();
    if (!p) {
      if (too_late(++spins)) break;
      continue;
    }
    wrong += p->number != next || p->inverse != ~next;
    ring->pop();
    ++next;
  }
  producer.join();
  EXPECT_TRUE(pushed_all);
  EXPECT_EQ(next, items) << "ran out of time";
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(ring->front(), nullptr);
}

TEST(SpscRing, CarriesMillionsInOrderBetweenTwoThreads) {
  two_threads<1024>(5000000);
  two_threads<2>(200000);
}

}  // namespace
}  // namespace weft
