// SPDX-License-Identifier: Apache-2.0
// Starting a peer, connecting to it, and the main() of programs that have one.
#include "tests/plugin/peer.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weft::plugin_test {

bool write_all(int fd, const void* data, size_t bytes) {
  return ::send(fd, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

bool read_all(int fd, void* data, size_t bytes) {
  return ::recv(fd, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

char hear(int fd) {
  char word = 0;
  return read_all(fd, &word, 1) ? word : 0;
}

Link::Link(Context& context, int fd) {
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
    return up() || testing::Test::HasFailure();
  })) << take_log();
  EXPECT_EQ(net().close_listen(listener), nccl::kSuccess);
}

Link::~Link() {
  if (send != nullptr) {
    EXPECT_EQ(net().close_send(send), nccl::kSuccess);
  }
  if (receive != nullptr) {
    EXPECT_EQ(net().close_recv(receive), nccl::kSuccess);
  }
}

Peer::Peer(const char* role) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  fd_ = ends[0];
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], kPeerFd);
    ::execl("/proc/self/exe", program_invocation_short_name, "--peer", role, nullptr);
    ::_exit(9);
  }
  ::close(ends[1]);
}

Peer::~Peer() {
  kill();
  ::close(fd_);
}

void Peer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  wait_for_end();
}

int Peer::wait_for_end() {
  int status = -1;
  if (pid_ > 0) ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

void Peer::expect_good_end() {
  const int status = wait_for_end();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the peer ended with " << status;
}

void ping(Link& link, uint64_t seed) {
  Buffer from(kPingBytes), to(kPingBytes);
  Registered source(link.send, from), sink(link.receive, to);
  from.fill(seed);
  void* receive = post_receive(link.receive, to.data(), kPingBytes, 0, sink.get());
  void* send = post_send(link.send, from.data(), kPingBytes, 0, source.get());
  ASSERT_EQ(wait(send), nccl::kSuccess) << take_log();
  ASSERT_EQ(wait(receive), nccl::kSuccess) << take_log();
  ASSERT_EQ(to.matches(seed, 0, kPingBytes), kPingBytes);
}

void echo(int fd) {
  Context context;
  Link link(context, fd);
  ASSERT_TRUE(link.up());
  Buffer memory(kPingBytes);
  Registered source(link.send, memory), sink(link.receive, memory);
  for (;;) {
    void* receive = post_receive(link.receive, memory.data(), kPingBytes, 0, sink.get());
    int done = 0;
    nccl::Result result = nccl::kSuccess;
    while (result == nccl::kSuccess && done == 0) result = net().test(receive, &done, nullptr);
    if (result != nccl::kSuccess) return;  // it has left
    if (wait(post_send(link.send, memory.data(), kPingBytes, 0, source.get())) != nccl::kSuccess)
      return;
  }
}

namespace {

int run_role(const char* name) {
  const auto role = kRoles.find(name);
  if (role == kRoles.end()) return 8;
  role->second(kPeerFd);
  if (!testing::Test::HasFailure()) return 0;
  std::fprintf(stderr, "in the peer: %s\n", take_log().c_str());
  return 1;
}

}  // namespace
}  // namespace weft::plugin_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::strcmp(argv[1], "--peer") == 0) {
    return weft::plugin_test::run_role(argv[2]);
  }
  const std::string timeout = std::to_string(weft::plugin_test::kPeerTimeoutMs);
  ::setenv("WEFT_PEER_TIMEOUT_MS", timeout.c_str(), 1);
  return RUN_ALL_TESTS();
}
