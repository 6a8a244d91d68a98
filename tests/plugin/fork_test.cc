// SPDX-License-Identifier: Apache-2.0
// Forks of a process that uses the plugin: Python's multiprocessing and DataLoaders make them, and
// they inherit every socket, every lock as it happens to be, and none of our threads.
//
// Roles: `echo` (peer.h). `parent` forks a child that lives on, and waits for its own end.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "tests/plugin/peer.h"

namespace weft::plugin_test {
namespace {

constexpr size_t kBytes = kPingBytes;

using Clock = std::chrono::steady_clock;

void parent(int fd) {
  static Context context;
  static Link link(context, fd);
  ASSERT_TRUE(link.up());
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, 0);
    for (;;) ::pause();
  }
  write_all(fd, &child, sizeof child);
  ::pause();
}

// The child holds every socket open; nobody reads them.
TEST(PluginFork, AForkedChildThatLivesOnDoesNotHideItsParentsDeath) {
  Context context;
  Peer peer("parent");
  Link link(context, peer.fd());
  ASSERT_TRUE(link.up());
  pid_t child = 0;
  ASSERT_TRUE(read_all(peer.fd(), &child, sizeof child));
  Buffer to(kBytes);
  Registered sink(link.receive, to);
  void* receive = post_receive(link.receive, to.data(), kBytes, 0, sink.get());
  const auto killed = Clock::now();
  peer.kill();
  EXPECT_EQ(wait(receive), nccl::kRemoteError);
  const auto took = Clock::now() - killed;
  EXPECT_LT(took, std::chrono::milliseconds(10 * kPeerTimeoutMs));
  EXPECT_EQ(::kill(child, 0), 0) << "the child was to live on";
  ::kill(child, SIGKILL);
}

// What a child inherits is of no use to it, and what it does with it disturbs nobody.
TEST(PluginFork, AForkedChildsCallsAreRefusedAndDisturbNobody) {
  Context context;
  Peer peer("echo");
  {
    Link link(context, peer.fd());
    ASSERT_TRUE(link.up());
    ping(link, 1);
    Buffer memory(kBytes);
    Registered source(link.send, memory);
    void* posted = post_receive(link.receive, nullptr, 0, 0, nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      void* out = nullptr;
      int done = 0, wrong = 0;
      wrong += try_send(link.send, memory.data(), 1, 0, source.get()).first == nccl::kSuccess;
      wrong += try_receive(link.receive, nullptr, 0, 0, nullptr).first == nccl::kSuccess;
      wrong += net().test(posted, &done, nullptr) == nccl::kSuccess;
      wrong += net().reg_mr(link.send, memory.data(), 1, nccl::kPtrHost, &out) == nccl::kSuccess;
      Handle handle{};
      wrong += net().listen(context.get(), 0, handle.data(), &out) == nccl::kSuccess;
      nccl::CommConfigV11 config{};
      if (has_contexts()) {
        wrong += net().init(&out, 1, &config, record_log, nullptr) == nccl::kSuccess;
      }
      if (take_log().find("forked") == std::string::npos) wrong += 100;
      // Ending things is never refused: a child's clean-up may be its parent's code.
      wrong += net().dereg_mr(link.send, source.get()) != nccl::kSuccess;
      wrong += net().close_send(link.send) != nccl::kSuccess;
      wrong += net().close_recv(link.receive) != nccl::kSuccess;
      wrong += net().finalize(context.get()) != nccl::kSuccess;
      ::_exit(wrong);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended with " << status;
    // The receive of nothing takes the peer's first answer, which is too large for it: so no ping
    // over this link, but one over a new one in the same context.
    (void)posted;
  }
  peer.kill();
  Peer second("echo");
  {
    Link link(context, second.fd());
    ASSERT_TRUE(link.up());
    ping(link, 2);
  }
  second.expect_good_end();
}

}  // namespace

const std::map<std::string, Role> kRoles = {{"echo", echo}, {"parent", parent}};

}  // namespace weft::plugin_test
