// SPDX-License-Identifier: Apache-2.0
// Ends: of flows with work under way, of memory in use, of contexts with half-open connections.
//
// Memory that the plugin may no longer touch is made inaccessible, so that touching it ends the
// test.
#include <dirent.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "tests/plugin/net.h"

namespace weft::plugin_test {
namespace {

constexpr size_t kBig = 4 << 20;

// Moves messages over `pair` and checks them: others' ends must not disturb it.
void exchange(Pair& pair, int messages, size_t bytes) {
  Buffer from(bytes), to(bytes);
  Registered source(pair.send(), from), sink(pair.receive(), to);
  for (int i = 0; i < messages; ++i) {
    from.fill(i);
    void* receive = post_receive(pair.receive(), to.data(), bytes, 0, sink.get());
    void* send = post_send(pair.send(), from.data(), bytes, 0, source.get());
    ASSERT_EQ(wait(receive), nccl::kSuccess) << take_log();
    ASSERT_EQ(wait(send), nccl::kSuccess) << take_log();
    ASSERT_EQ(to.matches(i, 0, bytes), bytes);
  }
}

int entries(const char* folder) {
  DIR* directory = ::opendir(folder);
  if (directory == nullptr) return -1;
  int count = 0;
  while (const dirent* entry = ::readdir(directory)) count += entry->d_name[0] != '.';
  ::closedir(directory);
  return count;
}

void poll(void* request, int times) {
  int done = 0;
  for (int i = 0; i < times && done == 0; ++i) {
    if (net().test(request, &done, nullptr) != nccl::kSuccess) return;
  }
}

TEST(PluginTeardown, ClosingWithWorkUnderWayTouchesNoMemoryAfterwards) {
  std::mt19937 random(11);
  Context context;
  Pair bystander(context, context);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    Pair pair(context, context);
    ASSERT_TRUE(pair.up());
    Buffer from(2 * kBig), to(2 * kBig);
    Registered source(pair.send(), from), sink(pair.receive(), to);
    from.fill(round);
    void* receives[2];
    for (int i = 0; i < 2; ++i) {
      receives[i] = post_receive(pair.receive(), to.data() + i * kBig, kBig, 0, sink.get());
    }
    void* send = post_send(pair.send(), from.data(), kBig, 0, source.get());
    poll(receives[0], static_cast<int>(random() % 200));
    poll(send, static_cast<int>(random() % 20));
    // As NCCL does on abort: registrations first, then the memory, then the comms.
    if (round % 2 == 0) {
      sink.drop();
      to.forbid();
      poll(send, 50);
      source.drop();
      from.forbid();
    } else {
      source.drop();
      from.forbid();
      poll(receives[0], 50);
      sink.drop();
      to.forbid();
    }
    exchange(bystander, 5, 100'000);
    if (round % 3 == 0) pair.close_receive();
    pair.close();
    exchange(bystander, 5, 100'000);
  }
}

TEST(PluginTeardown, DeregistrationFailsItsFlowForGood) {
  Context context;
  Pair pair(context, context);
  ASSERT_TRUE(pair.up());
  Buffer from(kBig), to(2 * kBig);
  Registered source(pair.send(), from), sink(pair.receive(), to);
  void* first = post_receive(pair.receive(), to.data(), kBig, 0, sink.get());
  void* second = post_receive(pair.receive(), to.data() + kBig, kBig, 0, sink.get());
  void* send = post_send(pair.send(), from.data(), kBig, 0, source.get());
  sink.drop();
  to.forbid();
  // The first may have arrived before its memory went; nothing was ever sent for the second.
  const nccl::Result error = wait(second);
  EXPECT_NE(error, nccl::kSuccess);
  EXPECT_NE(take_log(), "");
  Buffer more(4096);
  void* unused = nullptr;
  for (int i = 0; i < 3; ++i) {
    int done = 1;
    EXPECT_EQ(net().test(first, &done, nullptr), error);
    EXPECT_EQ(done, 0);
    EXPECT_EQ(net().test(second, &done, nullptr), error);
    EXPECT_EQ(try_receive(pair.receive(), nullptr, 0, 0, nullptr).first, error);
    EXPECT_EQ(net().reg_mr(pair.receive(), more.data(), 4096, nccl::kPtrHost, &unused), error);
  }
  // The other end learns that its receiver is gone.
  const nccl::Result sent = wait(send);
  EXPECT_TRUE(sent == nccl::kRemoteError || sent == nccl::kSuccess) << sent;
  EXPECT_TRUE(eventually([&] {
    return try_send(pair.send(), from.data(), 1, 0, source.get()).first == nccl::kRemoteError;
  }));
}

TEST(PluginTeardown, AReceiverMayCloseAsSoonAsItHasEverything) {
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    Context context;
    auto receiver = std::make_unique<Context>();
    Pair pair(context, *receiver);
    ASSERT_TRUE(pair.up());
    constexpr int kMessages = 8;
    constexpr size_t kBytes = 5000;
    Buffer from(kMessages * kBytes), to(kMessages * kBytes);
    std::vector<void*> receives, sends;
    {
      Registered sink(pair.receive(), to);
      Registered source(pair.send(), from);
      for (int i = 0; i < kMessages; ++i) {
        receives.push_back(
            post_receive(pair.receive(), to.data() + i * kBytes, kBytes, 0, sink.get()));
      }
      for (int i = 0; i < kMessages; ++i) {
        sends.push_back(post_send(pair.send(), from.data() + i * kBytes, kBytes, 0, source.get()));
      }
      ASSERT_EQ(wait_all(receives), nccl::kSuccess) << take_log();
      sink.drop();
      pair.close_receive();
      if (round % 2 == 0) receiver.reset();  // finalize too, and with it its last word
      ASSERT_EQ(wait_all(sends), nccl::kSuccess) << take_log();
    }
    pair.close_send();
  }
}

TEST(PluginTeardown, ConnectingToAClosedListenerEndsWithinThePeerTimeout) {
  ::setenv("WEFT_PEER_TIMEOUT_MS", "500", 1);  // who shows an unknown cookie gets no answer
  Context context;
  ::unsetenv("WEFT_PEER_TIMEOUT_MS");
  Handle handle{};
  void* listener = nullptr;
  ASSERT_EQ(net().listen(context.get(), 0, handle.data(), &listener), nccl::kSuccess);
  ASSERT_EQ(net().close_listen(listener), nccl::kSuccess);
  void* send = nullptr;
  nccl::Result result = nccl::kSuccess;
  EXPECT_TRUE(eventually([&] {
    result = net().connect(context.get(), 0, handle.data(), &send, nullptr);
    return result != nccl::kSuccess || send != nullptr;
  }));
  EXPECT_EQ(result, nccl::kRemoteError);
  EXPECT_NE(take_log().find("127.0.0.1"), std::string::npos);
}

TEST(PluginTeardown, FinalizeFreesWhatNeverCompleted) {
  WEFT_NEEDS_CONTEXTS();
  {
    Context warm;  // whatever the first use opens for good
    Pair pair(warm, warm);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int threads = entries("/proc/self/task");
  const int descriptors = entries("/proc/self/fd");
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    Context one, two;
    Pair finished(one, two);
    std::vector<Handle> handles(20);
    std::vector<void*> listeners(handles.size(), nullptr);
    for (size_t i = 0; i < handles.size(); ++i) {
      ASSERT_EQ(net().listen(one.get(), 0, handles[i].data(), &listeners[i]), nccl::kSuccess);
    }
    for (int attempt = 0; attempt < round * 20; ++attempt) {
      for (Handle& handle : handles) {
        void* send = nullptr;
        ASSERT_EQ(net().connect(two.get(), 0, handle.data(), &send, nullptr), nccl::kSuccess);
        ASSERT_EQ(send, nullptr);  // nobody accepts
      }
    }
    if (round == 3) {  // and one side comes only half-way
      void* receive = nullptr;
      eventually([&] {
        EXPECT_EQ(net().accept(listeners[0], &receive, nullptr), nccl::kSuccess);
        return receive != nullptr;
      });
      EXPECT_NE(receive, nullptr);
    }
    Buffer to(kBig);
    Registered sink(finished.receive(), to);
    EXPECT_NE(post_receive(finished.receive(), to.data(), kBig, 0, sink.get()), nullptr);
    sink.drop();
    if (round % 2 == 0) finished.close();
    (round % 2 == 0 ? one : two).finalize();
    (round % 2 == 0 ? two : one).finalize();
    // Comms that were not closed are gone with their contexts.
    if (round % 2 != 0) finished.forget();
  }
  EXPECT_TRUE(eventually([&] { return entries("/proc/self/task") <= threads; }, 5000))
      << entries("/proc/self/task") << " threads, " << threads << " before";
  EXPECT_LE(entries("/proc/self/fd"), descriptors);
}

TEST(PluginTeardown, OneContextEndsWhileAnotherGoesOn) {
  Context lasting;
  Pair bystander(lasting, lasting);
  for (int round = 0; round < 5; ++round) {
    Context passing;
    Pair pair(passing, lasting);
    ASSERT_TRUE(pair.up());
    Buffer from(kBig), to(kBig), unused(64);
    Registered source(pair.send(), from), sink(pair.receive(), to);
    from.fill(round);
    void* receive = post_receive(pair.receive(), to.data(), kBig, 0, sink.get());
    void* never = post_receive(pair.receive(), nullptr, 0, 0, nullptr);
    ASSERT_NE(post_send(pair.send(), from.data(), kBig, 0, source.get()), nullptr);
    source.drop();
    from.forbid();
    pair.close_send();
    passing.finalize();
    exchange(bystander, 10, 50'000);
    // The message may have been on its way as a whole; then it is whole.
    const nccl::Result result = wait(receive);
    if (result == nccl::kSuccess) {
      EXPECT_EQ(to.matches(round, 0, kBig), kBig);
    } else {
      EXPECT_EQ(result, nccl::kRemoteError);
    }
    EXPECT_EQ(wait(never), nccl::kRemoteError);
  }
}

TEST(PluginTeardown, ThePluginUnloadsAndComesBack) {
  for (int round = 0; round < 10; ++round) {
    {
      Context context;
      Pair pair(context, context);
      exchange(pair, 2, 200'000);
      take_log();
    }
    unload();
  }
}

}  // namespace
}  // namespace weft::plugin_test
