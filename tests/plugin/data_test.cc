// SPDX-License-Identifier: Apache-2.0
// Messages between two ends in one process, driven by one thread, as a self-connection is.
#include <algorithm>
#include <random>

#include "tests/plugin/net.h"

namespace weft::plugin_test {
namespace {

class PluginData : public testing::Test {
 protected:
  PluginData() : pair_(context_, context_) {}
  void SetUp() override {
    ASSERT_TRUE(pair_.up());
    take_log();
  }

  Context context_;
  Pair pair_;
};

TEST_F(PluginData, EveryByteOfMessagesOfAllSizesArrives) {
  for (const size_t bytes :
       {size_t{1}, size_t{7}, size_t{16}, size_t{127}, size_t{128}, size_t{4096}, size_t{57344},
        size_t{57345}, size_t{1} << 20, (size_t{9} << 20) + 5}) {
    SCOPED_TRACE(testing::Message() << bytes << " bytes");
    Buffer from(bytes), to(bytes);
    Registered source(pair_.send(), from), sink(pair_.receive(), to);
    from.fill(bytes);
    void* receive = post_receive(pair_.receive(), to.data(), bytes, 5, sink.get());
    void* send = post_send(pair_.send(), from.data(), bytes, 5, source.get());
    int size = -1;
    ASSERT_EQ(wait(receive, &size), nccl::kSuccess);
    EXPECT_EQ(static_cast<size_t>(size), bytes);
    EXPECT_EQ(to.matches(bytes, 0, bytes), bytes);
    ASSERT_EQ(wait(send, &size), nccl::kSuccess);
    EXPECT_EQ(static_cast<size_t>(size), bytes);
  }
}

TEST_F(PluginData, NoSendStartsBeforeItsReceive) {
  Buffer buffer(64);
  Registered source(pair_.send(), buffer);
  for (int i = 0; i < 1000; ++i) {
    const auto [result, request] = try_send(pair_.send(), buffer.data(), 64, 0, source.get());
    ASSERT_EQ(result, nccl::kSuccess);
    ASSERT_EQ(request, nullptr);
  }
}

TEST_F(PluginData, EmptyMessagesNeedNoMemoryAndNoHandle) {
  Buffer room(4096);
  Registered sink(pair_.receive(), room);
  room.set(0x77);
  struct Case {
    std::byte* to;
    size_t room;
    void* mhandle;
  };
  for (const Case& c : {Case{nullptr, 0, nullptr}, Case{room.data(), 4096, sink.get()},
                        Case{room.data(), 0, sink.get()}, Case{room.data() + 8192, 0, nullptr}}) {
    void* receive = post_receive(pair_.receive(), c.to, c.room, 1, c.mhandle);
    void* send = post_send(pair_.send(), nullptr, 0, 1, nullptr);
    int size = -1;
    ASSERT_EQ(wait(receive, &size), nccl::kSuccess);
    EXPECT_EQ(size, 0);
    ASSERT_EQ(wait(send), nccl::kSuccess);
  }
  EXPECT_TRUE(room.is_all(0x77, 0, room.size()));
}

TEST_F(PluginData, AReceiveMayBeLargerThanItsMessage) {
  Buffer from(1000), to(1 << 20);
  Registered source(pair_.send(), from), sink(pair_.receive(), to);
  from.fill(3);
  to.set(0x77);
  void* receive = post_receive(pair_.receive(), to.data(), to.size(), 0, sink.get());
  void* send = post_send(pair_.send(), from.data(), 1000, 0, source.get());
  int size = -1;
  ASSERT_EQ(wait(receive, &size), nccl::kSuccess);
  EXPECT_EQ(size, 1000);
  EXPECT_EQ(to.matches(3, 0, 1000), 1000u);
  EXPECT_TRUE(to.is_all(0x77, 1000, to.size() - 1000));
  EXPECT_EQ(wait(send), nccl::kSuccess);
}

TEST_F(PluginData, ASendLargerThanItsReceiveIsAnErrorAndWritesNothing) {
  Buffer from(8192), to(8192);
  Registered source(pair_.send(), from), sink(pair_.receive(), to);
  from.fill(4);
  to.set(0x77);
  void* receive = post_receive(pair_.receive(), to.data(), 4096, 0, sink.get());
  nccl::Result result = nccl::kSuccess;
  void* request = nullptr;
  ASSERT_TRUE(eventually([&] {
    std::tie(result, request) = try_send(pair_.send(), from.data(), 4097, 0, source.get());
    return result != nccl::kSuccess || request != nullptr;
  }));
  EXPECT_EQ(result, nccl::kInvalidArgument);
  EXPECT_EQ(request, nullptr);
  EXPECT_NE(take_log().find("larger"), std::string::npos);
  for (int i = 0; i < 1000; ++i) {
    int done = 1;
    ASSERT_EQ(net().test(receive, &done, nullptr), nccl::kSuccess);
    ASSERT_EQ(done, 0);
  }
  EXPECT_TRUE(to.is_all(0x77, 0, to.size()));
}

TEST_F(PluginData, GroupedReceivesMatchTagsThatRepeat) {
  constexpr int kParts = nccl::kMaxReceives;
  constexpr size_t kSlot = 64 << 10;
  Buffer from(kParts * kSlot), to(kParts * kSlot);
  Registered source(pair_.send(), from), sink(pair_.receive(), to);
  int tags[kParts] = {7, 9, 7, 7, 2, 9, 0, 7};
  for (int round = 0; round < 20; ++round) {
    to.set(0x77);
    void* buffers[kParts];
    size_t rooms[kParts];
    void* mhandles[kParts];
    for (int i = 0; i < kParts; ++i) {
      buffers[i] = to.data() + i * kSlot;
      rooms[i] = kSlot;
      mhandles[i] = sink.get();
    }
    void* receive = nullptr;
    ASSERT_EQ(
        net().irecv(pair_.receive(), kParts, buffers, rooms, tags, mhandles, nullptr, &receive),
        nccl::kSuccess);
    ASSERT_NE(receive, nullptr);
    // Sent in an order of its own: of parts with one tag the first free takes the first.
    std::array<int, kParts> order = {4, 0, 1, 2, 6, 3, 5, 7};
    std::rotate(order.begin(), order.begin() + round % kParts, order.end());
    std::array<size_t, kParts> expected{};
    std::array<uint64_t, kParts> seeds{};
    std::array<bool, kParts> taken{};
    std::vector<void*> sends;
    for (int step = 0; step < kParts; ++step) {
      const int from_slot = order[step];
      int part = 0;
      while (taken[part] || tags[part] != tags[from_slot]) ++part;
      taken[part] = true;
      expected[part] = static_cast<size_t>(round * 1001 + step * 7777) % (kSlot + 1);
      seeds[part] = static_cast<uint64_t>(round * 100 + step);
      from.fill(seeds[part], from_slot * kSlot, expected[part]);
      sends.push_back(post_send(pair_.send(), from.data() + from_slot * kSlot, expected[part],
                                tags[from_slot], source.get()));
    }
    int sizes[kParts + 1];
    std::fill_n(sizes, kParts + 1, -7);
    ASSERT_EQ(wait(receive, sizes), nccl::kSuccess);
    EXPECT_EQ(sizes[kParts], -7) << "test wrote more sizes than there are parts";
    for (int i = 0; i < kParts; ++i) {
      EXPECT_EQ(static_cast<size_t>(sizes[i]), expected[i]) << "part " << i << ", round " << round;
      EXPECT_EQ(to.matches(seeds[i], i * kSlot, expected[i]), expected[i]) << "part " << i;
      EXPECT_TRUE(to.is_all(0x77, i * kSlot + expected[i], kSlot - expected[i])) << "part " << i;
    }
    ASSERT_EQ(wait_all(sends), nccl::kSuccess);
  }
}

TEST_F(PluginData, RequestsMayBeTestedInAnyOrder) {
  constexpr size_t kSlot = 100'000;
  constexpr int kMessages = 32;
  std::mt19937 random(7);
  Buffer from(kMessages * kSlot), to(kMessages * kSlot);
  Registered source(pair_.send(), from), sink(pair_.receive(), to);
  std::vector<void*> receives, sends;
  for (int i = 0; i < kMessages; ++i) {
    receives.push_back(post_receive(pair_.receive(), to.data() + i * kSlot, kSlot, 0, sink.get()));
  }
  for (int i = 0; i < kMessages; ++i) {
    from.fill(i, i * kSlot, kSlot);
    sends.push_back(post_send(pair_.send(), from.data() + i * kSlot, kSlot, 0, source.get()));
  }
  std::shuffle(receives.begin(), receives.end(), random);
  std::shuffle(sends.begin(), sends.end(), random);
  ASSERT_EQ(wait_all(receives), nccl::kSuccess);
  ASSERT_EQ(wait_all(sends), nccl::kSuccess);
  for (int i = 0; i < kMessages; ++i) EXPECT_EQ(to.matches(i, i * kSlot, kSlot), kSlot) << i;
}

TEST_F(PluginData, AFullCommSaysNotNowAndTakesMoreLater) {
  Buffer to(64);
  Registered sink(pair_.receive(), to);
  std::vector<void*> receives;
  for (int i = 0; i < 10000; ++i) {
    const auto [result, request] = try_receive(pair_.receive(), to.data(), 64, 0, sink.get());
    ASSERT_EQ(result, nccl::kSuccess);
    if (request == nullptr) break;
    receives.push_back(request);
  }
  EXPECT_GE(receives.size(), static_cast<size_t>(nccl::kMaxRequests));
  EXPECT_LT(receives.size(), 10000u);
  void* send = post_send(pair_.send(), nullptr, 0, 0, nullptr);
  ASSERT_EQ(wait(receives.front()), nccl::kSuccess);
  ASSERT_EQ(wait(send), nccl::kSuccess);
  EXPECT_NE(post_receive(pair_.receive(), to.data(), 64, 0, sink.get()), nullptr);
}

TEST_F(PluginData, TheHintOfAnOptionalCompletionIsNoRequest) {
  Buffer from(16), to(65536);
  Registered source(pair_.send(), from), sink(pair_.receive(), to);
  from.fill(1);
  void* buffers[1] = {to.data()};
  size_t rooms[1] = {to.size()};
  int tags[1] = {0};
  void* mhandles[1] = {sink.get()};
  void* receive = WEFT_NCCL_OPTIONAL_RECV_COMPLETION;
  ASSERT_EQ(net().irecv(pair_.receive(), 1, buffers, rooms, tags, mhandles, nullptr, &receive),
            nccl::kSuccess);
  ASSERT_NE(receive, nullptr);
  ASSERT_NE(receive, WEFT_NCCL_OPTIONAL_RECV_COMPLETION);
  void* send = post_send(pair_.send(), from.data(), 16, 0, source.get());
  int size = 0;
  ASSERT_EQ(wait(receive, &size), nccl::kSuccess);
  EXPECT_EQ(size, 16);
  ASSERT_EQ(wait(send), nccl::kSuccess);
  // One more than a grouped receive can have.
  void* many_buffers[9] = {to.data()};
  size_t many_rooms[9] = {to.size()};
  int many_tags[9] = {0};
  void* many_mhandles[9] = {sink.get()};
  receive = WEFT_NCCL_OPTIONAL_RECV_COMPLETION;
  EXPECT_EQ(net().irecv(pair_.receive(), 9, many_buffers, many_rooms, many_tags, many_mhandles,
                        nullptr, &receive),
            nccl::kInvalidArgument);
  EXPECT_EQ(receive, nullptr);
}

TEST_F(PluginData, AFlushOfHostMemoryIsNothing) {
  Buffer to(64);
  Registered sink(pair_.receive(), to);
  void* buffers[1] = {to.data()};
  int sizes[1] = {64};
  void* mhandles[1] = {sink.get()};
  void* request = &request;
  EXPECT_EQ(net().iflush(pair_.receive(), 1, buffers, sizes, mhandles, &request), nccl::kSuccess);
  EXPECT_EQ(request, nullptr);
}

TEST_F(PluginData, ARequestIsOverOnlyOnce) {
  void* receive = post_receive(pair_.receive(), nullptr, 0, 0, nullptr);
  void* send = post_send(pair_.send(), nullptr, 0, 0, nullptr);
  ASSERT_EQ(wait(receive), nccl::kSuccess);
  ASSERT_EQ(wait(send), nccl::kSuccess);
  int done = 0;
  EXPECT_EQ(net().test(receive, &done, nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace weft::plugin_test
