// SPDX-License-Identifier: Apache-2.0
// Two processes. The roles of the other one: `exchange`: both ends send and receive, check every
// byte, and close in an order of chance. `hold`: the peer accepts, posts receives, says so, and
// waits for its end. `leave`: exit() amid traffic, nothing closed.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/plugin/peer.h"

namespace weft::plugin_test {
namespace {

constexpr int kMessages = 64;
constexpr size_t kSlot = 300'000;

size_t bytes_of(int message) {
  return message % 7 == 0 ? static_cast<size_t>(message % 3) : (message * 104729u) % (kSlot + 1);
}

void exchange(int fd, uint64_t own, uint64_t other) {
  Context context;
  Link link(context, fd);
  ASSERT_TRUE(link.up());
  Buffer from(kMessages * kSlot), to(kMessages * kSlot);
  Registered source(link.send, from), sink(link.receive, to);
  std::vector<void*> receives(kMessages), sends(kMessages);
  const int depth = 16;
  for (int i = 0; i < kMessages + depth; ++i) {
    if (i < kMessages) {
      receives[i] = post_receive(link.receive, to.data() + i * kSlot, kSlot, 0, sink.get());
    }
    if (i < depth) continue;
    const int at = i - depth;
    from.fill(own + at, at * kSlot, bytes_of(at));
    sends[at] = post_send(link.send, from.data() + at * kSlot, bytes_of(at), 0, source.get());
    int size = -1;
    ASSERT_EQ(wait(receives[at], &size), nccl::kSuccess) << take_log();
    ASSERT_EQ(static_cast<size_t>(size), bytes_of(at));
    ASSERT_EQ(to.matches(other + at, at * kSlot, bytes_of(at)), bytes_of(at)) << "message " << at;
  }
  ASSERT_EQ(wait_all(sends), nccl::kSuccess) << take_log();
}

void hold(int fd) {
  Context context;
  Link link(context, fd);
  if (!link.up()) return;
  Buffer to(kSlot);
  Registered sink(link.receive, to);
  for (int i = 0; i < 4; ++i) post_receive(link.receive, to.data(), kSlot, 0, sink.get());
  const char ready = 'r';
  if (!write_all(fd, &ready, 1)) return;
  ::pause();
}

void leave(int) {
  static auto& context = *new Context;  // never destroyed
  static auto& pair = *new Pair(context, context);
  static auto& memory = *new Buffer(1 << 20);
  static auto& source = *new Registered(pair.send(), memory);
  static auto& sink = *new Registered(pair.receive(), memory);
  post_receive(pair.receive(), memory.data(), 1 << 20, 0, sink.get());
  post_send(pair.send(), memory.data(), 1 << 20, 0, source.get());
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(PluginProcesses, TwoProcessesExchangeEveryByte) {
  for (int round = 0; round < 3; ++round) {
    Peer peer("exchange");
    exchange(peer.fd(), 1000, 5000);
    peer.expect_good_end();
  }
}

TEST(PluginProcesses, ADeadPeerIsARemoteErrorOnEveryCall) {
  Context context;
  Peer peer("hold");
  Link link(context, peer.fd());
  ASSERT_TRUE(link.up());
  char ready = 0;
  ASSERT_TRUE(read_all(peer.fd(), &ready, 1));
  Buffer memory(8 << 20);
  Registered source(link.send, memory), sink(link.receive, memory);
  void* receive = post_receive(link.receive, memory.data(), 4096, 0, sink.get());
  void* send = post_send(link.send, memory.data(), kSlot, 0, source.get());
  take_log();
  peer.kill();
  EXPECT_EQ(wait(receive), nccl::kRemoteError);
  // The send may have arrived and been acked before the end; the next ones cannot.
  const nccl::Result first = wait(send);
  EXPECT_TRUE(first == nccl::kRemoteError || first == nccl::kSuccess) << first;
  EXPECT_TRUE(eventually([&] {
    return try_send(link.send, memory.data(), 8, 0, source.get()).first == nccl::kRemoteError;
  }));
  EXPECT_NE(take_log().find("127.0.0.1"), std::string::npos);
  int done = 0;
  EXPECT_EQ(net().test(receive, &done, nullptr), nccl::kRemoteError);
  EXPECT_EQ(try_receive(link.receive, memory.data(), 8, 0, sink.get()).first, nccl::kRemoteError);
}

TEST(PluginProcesses, AProcessMayExitWithoutAnyFinalize) {
  for (int round = 0; round < 5; ++round) {
    Peer peer("leave");
    peer.expect_good_end();
  }
}

TEST(PluginProcesses, AnEndpointsCountersAreALineOfJson) {
  char path[] = "/tmp/weft-stats-XXXXXX";
  const int file = ::mkstemp(path);
  ASSERT_GE(file, 0);
  ::setenv("WEFT_STATS", ("/proc/self/fd/" + std::to_string(file)).c_str(), 1);
  constexpr size_t kBytes = 10 << 20;
  {
    Context context;
    Pair pair(context, context);
    Buffer from(kBytes), to(kBytes);
    Registered source(pair.send(), from), sink(pair.receive(), to);
    void* receive = post_receive(pair.receive(), to.data(), kBytes, 0, sink.get());
    void* send = post_send(pair.send(), from.data(), kBytes, 0, source.get());
    EXPECT_EQ(wait(receive), nccl::kSuccess);
    EXPECT_EQ(wait(send), nccl::kSuccess);
  }
  ::unsetenv("WEFT_STATS");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  ::close(file);
  ::unlink(path);
  const std::string line = text.str();
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  EXPECT_NE(line.find("\"retransmitted\":"), std::string::npos) << line;
  EXPECT_NE(line.find("\"lost\":"), std::string::npos) << line;
  uint64_t sum = 0;
  int used = 0;
  for (size_t at = line.find("\"bytes\":"); at != std::string::npos;
       at = line.find("\"bytes\":", at + 1)) {
    const uint64_t bytes = std::strtoull(line.c_str() + at + 8, nullptr, 10);
    sum += bytes;
    used += bytes > 0;
  }
  EXPECT_GE(sum, kBytes) << line;
  EXPECT_GE(used, 4) << line;
}

TEST(PluginProcesses, CountersThatCannotBeWrittenAreAWarning) {
  ::setenv("WEFT_STATS", "/nowhere/at/all", 1);
  {
    Context context;
    Pair pair(context, context);
    take_log();
  }
  ::unsetenv("WEFT_STATS");
  EXPECT_NE(take_log().find("/nowhere/at/all"), std::string::npos);
}

}  // namespace

const std::map<std::string, Role> kRoles = {
    {"exchange", [](int fd) { exchange(fd, 5000, 1000); }}, {"hold", hold}, {"leave", leave}};

}  // namespace weft::plugin_test
