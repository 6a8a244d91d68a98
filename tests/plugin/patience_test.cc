// SPDX-License-Identifier: Apache-2.0
// What is asked again and again: connect and accept in turns by both ends, requests that cannot
// finish yet, sends that nobody has posted a receive for. All of it comes to its end, and costs
// nothing that stays. And of versions without contexts: the last close is the end, whatever came
// before.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "tests/plugin/holdings.h"
#include "tests/plugin/net.h"

namespace weft::plugin_test {
namespace {

constexpr int kPolls = 30'000;
constexpr size_t kHeapSlack = 96 << 10;  // as in costs_test.cc; a byte a poll would show
constexpr size_t kSlot = 30'000;

// One of two that connect to each other: a listener for each connection that it is to accept.
struct Side {
  explicit Side(size_t connections)
      : handles(connections), listeners(connections), sends(connections), receives(connections) {
    for (size_t i = 0; i < connections; ++i) {
      EXPECT_EQ(net().listen(context.get(), 0, handles[i].data(), &listeners[i]), nccl::kSuccess)
          << take_log();
    }
  }

  Context context;
  std::vector<Handle> handles;
  std::vector<void*> listeners, sends, receives;
};

std::vector<size_t> shuffled(size_t count, std::mt19937& random) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

// Everything that is not up yet is tried once in every turn, in an order of its own.
bool meet(Side& self, std::vector<Handle> theirs, std::mt19937& random) {
  const size_t count = theirs.size();
  size_t up = 0;
  return eventually([&] {
    for (const size_t step : shuffled(2 * count, random)) {
      const size_t i = step % count;
      void*& comm = step < count ? self.sends[i] : self.receives[i];
      if (comm != nullptr) continue;
      EXPECT_EQ(step < count
                    ? net().connect(self.context.get(), 0, theirs[i].data(), &comm, nullptr)
                    : net().accept(self.listeners[i], &comm, nullptr),
                nccl::kSuccess)
          << take_log();
      up += comm != nullptr;
    }
    return up == 2 * count || testing::Test::HasFailure();
  });
}

// A message over each connection, both ways at once: all receives, then all sends.
void exchange(Side& self, uint64_t ours, uint64_t theirs, std::mt19937& random) {
  const size_t count = self.sends.size();
  Buffer from(count * kSlot), to(count * kSlot);
  std::vector<std::unique_ptr<Registered>> registrations;
  std::vector<void*> receives(count), sends(count);
  for (size_t i = 0; i < count; ++i) {
    registrations.push_back(std::make_unique<Registered>(self.receives[i], to));
    receives[i] = post_receive(self.receives[i], to.data() + i * kSlot, kSlot, 0,
                               registrations.back()->get());
  }
  for (const size_t i : shuffled(count, random)) {
    registrations.push_back(std::make_unique<Registered>(self.sends[i], from));
    from.fill(ours + i, i * kSlot, kSlot);
    sends[i] =
        post_send(self.sends[i], from.data() + i * kSlot, kSlot, 0, registrations.back()->get());
  }
  for (const size_t i : shuffled(count, random)) {
    ASSERT_EQ(wait(receives[i]), nccl::kSuccess) << take_log();
    ASSERT_EQ(to.matches(theirs + i, i * kSlot, kSlot), kSlot) << "connection " << i;
  }
  ASSERT_EQ(wait_all(sends), nccl::kSuccess) << take_log();
}

void close_all(Side& self, std::mt19937& random) {
  const size_t count = self.sends.size();
  const std::array<nccl::Result (*)(void*), 3> close = {net().close_send, net().close_recv,
                                                        net().close_listen};
  const std::array<std::vector<void*>*, 3> comms = {&self.sends, &self.receives, &self.listeners};
  for (const size_t step : shuffled(3 * count, random)) {
    EXPECT_EQ(close[step / count]((*comms[step / count])[step % count]), nccl::kSuccess);
  }
}

void both_at_once(int rounds, size_t connections, uint32_t seed) {
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    Side one(connections), other(connections);
    std::atomic<int> ready{0};
    const auto live = [&](Side& self, const Side& peer, uint64_t number) {
      SCOPED_TRACE(testing::Message() << "round " << round << ", seed " << seed);
      std::mt19937 random(seed + 1000 * static_cast<uint32_t>(round) +
                          static_cast<uint32_t>(number));
      for (++ready; ready.load() < 2;) std::this_thread::yield();
      ASSERT_TRUE(meet(self, peer.handles, random)) << "took too long\n" << take_log();
      const uint64_t messages = 100 * static_cast<uint64_t>(round);
      exchange(self, messages + 10 * number, messages + 10 * (1 - number), random);
      close_all(self, random);
    };
    std::thread thread([&] { live(other, one, 1); });
    live(one, other, 0);
    thread.join();
  }
}

TEST(PluginPatience, BothEndsMayConnectToEachOtherAtOnce) { both_at_once(40, 1, 11); }

TEST(PluginPatience, BothEndsMayOpenEightConnectionsToEachOtherAtOnceInAnyOrder) {
  both_at_once(12, 8, 12);
}

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// A listener that was used, one that was not, and both ends of a connection: closed in every order.
TEST(PluginPatience, WithoutContextsTheLastCloseIsTheEndInAnyOrderAndNotTheOneBefore) {
  if (has_contexts()) GTEST_SKIP() << "version " << api_version() << " ends with finalize";
  std::mt19937 random(13);
  const std::ptrdiff_t threads_before = threads();
  const int descriptors = open_descriptors();
  std::array<int, 4> order = {0, 1, 2, 3};
  do {
    Side self(2);
    ASSERT_TRUE(meet(self, {self.handles[0]}, random)) << take_log();
    self.sends.pop_back();
    self.receives.pop_back();
    ASSERT_NO_FATAL_FAILURE(exchange(self, 1, 1, random));
    for (const int step : order) {
      EXPECT_GT(open_descriptors(), descriptors) << "ended before the last close";
      void* comm = step < 2 ? self.listeners[step] : step == 2 ? self.sends[0] : self.receives[0];
      EXPECT_EQ((step < 2    ? net().close_listen
                 : step == 2 ? net().close_send
                             : net().close_recv)(comm),
                nccl::kSuccess);
    }
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_TRUE(eventually([&] { return threads() == threads_before; }, 5000)) << threads();
  } while (std::next_permutation(order.begin(), order.end()));
}

struct Holdings {
  int descriptors = open_descriptors();
  size_t heap = heap_bytes();

  void expect_no_more() const {
    EXPECT_LE(open_descriptors(), descriptors);
    EXPECT_LE(heap_bytes(), heap + kHeapSlack);
  }
};

class PluginPolls : public testing::Test {
 protected:
  PluginPolls() : pair_(context_, context_), from_(kParts * kSlot), to_(kParts * kSlot) {}
  void SetUp() override {
    ASSERT_TRUE(pair_.up());
    source_ = std::make_unique<Registered>(pair_.send(), from_);
    sink_ = std::make_unique<Registered>(pair_.receive(), to_);
    std::iota(tags_.begin(), tags_.end(), 5);
    // Flows get their memory with their first message, paths with what first crosses them.
    Buffer much(64 << 20);
    Registered out(pair_.send(), much), in(pair_.receive(), much);
    void* receive = post_receive(pair_.receive(), much.data(), much.size(), 0, in.get());
    void* sent = post_send(pair_.send(), much.data(), much.size(), 0, out.get());
    ASSERT_EQ(wait(receive), nccl::kSuccess) << take_log();
    ASSERT_EQ(wait(sent), nccl::kSuccess) << take_log();
  }

  static constexpr int kParts = nccl::kMaxReceives;
  using Sizes = std::array<int, kParts + 1>;

  // In every part another room, another size, another tag; the first message is empty.
  static size_t room(int i) { return kSlot - static_cast<size_t>(i); }
  static size_t bytes(int i) { return static_cast<size_t>(i) * kSlot / kParts; }
  std::byte* place(const Buffer& of, int i) const { return of.data() + i * kSlot; }

  void* group(int parts) {
    std::array<void*, kParts> data, mhandles;
    std::array<size_t, kParts> rooms;
    for (int i = 0; i < parts; ++i) {
      data[i] = place(to_, i), rooms[i] = room(i), mhandles[i] = sink_->get();
    }
    void* request = nullptr;
    EXPECT_EQ(net().irecv(pair_.receive(), parts, data.data(), rooms.data(), tags_.data(),
                          mhandles.data(), nullptr, &request),
              nccl::kSuccess);
    return request;
  }
  void* send(int i, uint64_t seed) {
    from_.fill(seed, i * kSlot, bytes(i));
    return post_send(pair_.send(), place(from_, i), bytes(i), tags_[i], source_->get());
  }

  // Not done, and nothing written.
  void poll(void* request, int times) {
    Sizes sizes;
    sizes.fill(-7);
    for (int i = 0; i < times; ++i) {
      int done = 1;
      ASSERT_EQ(net().test(request, &done, i % 2 == 0 ? sizes.data() : nullptr), nccl::kSuccess);
      ASSERT_EQ(done, 0);
    }
    for (const int size : sizes) ASSERT_EQ(size, -7);
  }
  // Two receives of one part and one of all, with nothing sent; then all of them are filled.
  void cycle(int polls, uint64_t seed) {
    const std::array<void*, 3> receives = {group(1), group(kParts), group(1)};
    const Holdings before;
    for (void* receive : receives) ASSERT_NO_FATAL_FAILURE(poll(receive, polls));
    before.expect_no_more();
    std::vector<void*> sends = {send(0, seed)};
    for (int i = kParts - 1; i >= 0; --i) sends.push_back(send(i, seed + i));
    sends.push_back(send(0, seed));
    for (void* receive : receives) {
      Sizes sizes;
      sizes.fill(-7);
      ASSERT_EQ(wait(receive, sizes.data()), nccl::kSuccess) << take_log();
      const int parts = receive == receives[1] ? kParts : 1;
      for (int i = 0; i < parts; ++i) ASSERT_EQ(static_cast<size_t>(sizes[i]), bytes(i));
      ASSERT_EQ(sizes[parts], -7);
    }
    ASSERT_EQ(wait_all(sends), nccl::kSuccess) << take_log();
    expect_arrived(seed);
  }
  void expect_arrived(uint64_t seed) const {
    for (int i = 0; i < kParts; ++i) {
      ASSERT_EQ(to_.matches(seed + i, i * kSlot, bytes(i)), bytes(i)) << "part " << i;
    }
  }

  Context context_;
  Pair pair_;
  Buffer from_, to_;
  std::unique_ptr<Registered> source_, sink_;
  std::array<int, kParts> tags_;
};

TEST_F(PluginPolls, OfReceivesThatNobodySendsToCostNothingThatStays) {
  const Holdings before;
  for (uint64_t round = 2; round < 4; ++round) ASSERT_NO_FATAL_FAILURE(cycle(kPolls, round * 100));
  before.expect_no_more();
}

TEST_F(PluginPolls, OfASendThatHasNoReceiveCostNothingThatStays) {
  const auto refused = [&](int times, uint64_t seed) {
    constexpr int kPart = kParts - 1;
    from_.fill(seed, kPart * kSlot, bytes(kPart));
    for (int i = 0; i < times; ++i) {
      const auto [result, request] =
          try_send(pair_.send(), place(from_, kPart), bytes(kPart), tags_[kPart], source_->get());
      ASSERT_EQ(result, nccl::kSuccess);
      ASSERT_EQ(request, nullptr);
    }
    void* receive = post_receive(pair_.receive(), place(to_, 0), kSlot, tags_[kPart], sink_->get());
    void* sent = send(kPart, seed);
    ASSERT_EQ(wait(receive), nccl::kSuccess) << take_log();
    ASSERT_EQ(wait(sent), nccl::kSuccess) << take_log();
    ASSERT_EQ(to_.matches(seed, 0, bytes(kPart)), bytes(kPart));
  };
  const Holdings before;
  for (uint64_t round = 2; round < 4; ++round) ASSERT_NO_FATAL_FAILURE(refused(kPolls, round));
  before.expect_no_more();
}

TEST_F(PluginPolls, NeedNoPlaceForSizes) {
  for (const int parts : {1, 2, kParts}) {
    for (uint64_t round = 0; round < 20; ++round) {
      const uint64_t seed = 1000 * round + 100 * static_cast<uint64_t>(parts);
      to_.set(0x77);
      void* receive = group(parts);
      ASSERT_NO_FATAL_FAILURE(poll(receive, 3));
      std::vector<void*> sends;
      for (int i = 0; i < parts; ++i) sends.push_back(send(i, seed + i));
      ASSERT_EQ(wait(receive, nullptr), nccl::kSuccess) << take_log();
      for (void* sent : sends) ASSERT_EQ(wait(sent, nullptr), nccl::kSuccess) << take_log();
      for (int i = 0; i < parts; ++i) {
        ASSERT_EQ(to_.matches(seed + i, i * kSlot, bytes(i)), bytes(i)) << "part " << i;
        ASSERT_TRUE(to_.is_all(0x77, i * kSlot + bytes(i), kSlot - bytes(i))) << "part " << i;
      }
    }
  }
}

}  // namespace
}  // namespace weft::plugin_test
