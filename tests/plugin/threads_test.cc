// SPDX-License-Identifier: Apache-2.0
// Communicators on threads of their own, as NCCL has them: all in one plugin at once, on one
// endpoint.
#include <atomic>
#include <random>
#include <thread>

#include "tests/plugin/net.h"

namespace weft::plugin_test {
namespace {

constexpr size_t kSlot = 48 << 10;
constexpr int kDepth = 8;

// Messages of random sizes through a window of kDepth, each checked.
void stream(Pair& pair, int messages, uint32_t seed) {
  std::mt19937 random(seed);
  Buffer from(kDepth * kSlot), to(kDepth * kSlot);
  Registered source(pair.send(), from), sink(pair.receive(), to);
  struct Slot {
    void* receive = nullptr;
    void* send = nullptr;
    size_t bytes = 0;
  };
  std::array<Slot, kDepth> slots;
  for (int i = 0; i < messages + kDepth; ++i) {
    Slot& slot = slots[static_cast<size_t>(i % kDepth)];
    const size_t at = static_cast<size_t>(i % kDepth) * kSlot;
    if (i >= kDepth) {
      int size = -1;
      ASSERT_EQ(wait(slot.receive, &size), nccl::kSuccess) << take_log();
      ASSERT_EQ(static_cast<size_t>(size), slot.bytes);
      ASSERT_EQ(to.matches(seed * 1000 + i - kDepth, at, slot.bytes), slot.bytes)
          << "message " << i - kDepth << ", seed " << seed;
      ASSERT_EQ(wait(slot.send), nccl::kSuccess) << take_log();
    }
    if (i >= messages) continue;
    slot.bytes = random() % 4 == 0 ? random() % 64 : random() % (kSlot + 1);
    from.fill(seed * 1000 + i, at, slot.bytes);
    slot.receive = post_receive(pair.receive(), to.data() + at, kSlot, 3, sink.get());
    slot.send = post_send(pair.send(), from.data() + at, slot.bytes, 3, source.get());
  }
}

TEST(PluginThreads, ManyContextsMoveDataAtOnce) {
  constexpr int kThreads = 6;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int round = 0; round < 3; ++round) {
        Context context(t);
        Pair there(context, context), back(context, context);
        ASSERT_TRUE(there.up() && back.up());
        stream(there, 120, static_cast<uint32_t>(t * 10 + round));
        stream(back, 40, static_cast<uint32_t>(500 + t * 10 + round));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PluginThreads, RegistrationGoesOnBesideTheDataOfTheSameComm) {
  Context context;
  Pair pair(context, context);
  ASSERT_TRUE(pair.up());
  std::atomic<bool> over{false};
  std::thread service([&] {
    Buffer memory(1 << 20);
    nccl::NetAttrV11 attributes{};
    while (!over.load()) {
      Registered one(pair.send(), memory), two(pair.receive(), memory);
      EXPECT_EQ(set_attributes(context, attributes), nccl::kSuccess);
      Pair other(context, context);
      EXPECT_TRUE(other.up());
    }
  });
  stream(pair, 1500, 77);
  over = true;
  service.join();
}

}  // namespace
}  // namespace weft::plugin_test
