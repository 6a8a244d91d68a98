// SPDX-License-Identifier: Apache-2.0
// Two processes: this program runs itself again as the peer, with a socket between the two for handles.
//
//   test_plugin_process --peer exchange|hold|leave      (the socket is descriptor kPeerFd)
//
// `exchange`: both ends send and receive, check every byte, and close in an order of chance. `hold`: the
// peer accepts, posts receives, says so, and waits for its end. `leave`: exit() amid traffic, nothing
// closed.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "tests/plugin/net.h"

namespace weft::plugin_test {
namespace {

constexpr int kPeerFd = 100;  // far from what is open here
constexpr int kMessages = 64;
constexpr size_t kSlot = 300'000;

size_t bytes_of(int message) {
  return message % 7 == 0 ? static_cast<size_t>(message % 3) : (message * 104729u) % (kSlot + 1);
}

bool write_all(int fd, const void* data, size_t bytes) {
  return ::write(fd, data, bytes) == static_cast<ssize_t>(bytes);
}
bool read_all(int fd, void* data, size_t bytes) {
  return ::recv(fd, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

// A connection each way to whoever is at the other end of `fd`.
struct Link {
  Link(Context& context, int fd) {
    Handle mine{}, theirs{};
    void* listener = nullptr;
    EXPECT_EQ(net().listen(context.get(), 0, mine.data(), &listener), nccl::kSuccess);
    if (!write_all(fd, mine.data(), mine.size()) || !read_all(fd, theirs.data(), theirs.size())) {
      ADD_FAILURE() << "the other process is gone";
      return;
    }
    EXPECT_TRUE(eventually([&] {
      if (send == nullptr) {
        EXPECT_EQ(net().connect(context.get(), 0, theirs.data(), &send, nullptr), nccl::kSuccess);
      }
      if (receive == nullptr) {
        EXPECT_EQ(net().accept(listener, &receive, nullptr), nccl::kSuccess);
      }
      return (send != nullptr && receive != nullptr) || testing::Test::HasFailure();
    })) << take_log();
    EXPECT_EQ(net().close_listen(listener), nccl::kSuccess);
  }
  ~Link() {
    if (send != nullptr) {
      EXPECT_EQ(net().close_send(send), nccl::kSuccess);
    }
    if (receive != nullptr) {
      EXPECT_EQ(net().close_recv(receive), nccl::kSuccess);
    }
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  bool up() const { return send != nullptr && receive != nullptr; }

  void* send = nullptr;
  void* receive = nullptr;
};

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

void leave() {
  static auto& context = *new Context;  // never destroyed
  static auto& pair = *new Pair(context, context);
  static auto& memory = *new Buffer(1 << 20);
  static auto& source = *new Registered(pair.send(), memory);
  static auto& sink = *new Registered(pair.receive(), memory);
  post_receive(pair.receive(), memory.data(), 1 << 20, 0, sink.get());
  post_send(pair.send(), memory.data(), 1 << 20, 0, source.get());
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

class Peer {
 public:
  explicit Peer(const char* what) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    fd_ = ends[0];
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], kPeerFd);
      ::execl("/proc/self/exe", "test_plugin_process", "--peer", what, nullptr);
      ::_exit(9);
    }
    ::close(ends[1]);
  }
  ~Peer() {
    kill();
    ::close(fd_);
  }
  int fd() const { return fd_; }
  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait_for_end();
    }
  }
  int wait_for_end() {
    int status = -1;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

TEST(PluginProcesses, TwoProcessesExchangeEveryByte) {
  for (int round = 0; round < 3; ++round) {
    Peer peer("exchange");
    exchange(peer.fd(), 1000, 5000);
    const int status = peer.wait_for_end();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the peer ended with " << status;
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
    const int status = peer.wait_for_end();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the peer ended with " << status;
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

int run_peer(const std::string& what) {
  if (what == "exchange") {
    exchange(kPeerFd, 5000, 1000);
  } else if (what == "leave") {
    leave();
  } else {
    hold(kPeerFd);
  }
  if (!testing::Test::HasFailure()) return 0;
  std::fprintf(stderr, "in the peer: %s\n", take_log().c_str());
  return 1;
}

}  // namespace weft::plugin_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::strcmp(argv[1], "--peer") == 0) {
    return weft::plugin_test::run_peer(argv[2]);
  }
  ::setenv("WEFT_PEER_TIMEOUT_MS", "1000", 1);
  return RUN_ALL_TESTS();
}
