// SPDX-License-Identifier: Apache-2.0
// Two processes: data crosses, and a peer that is killed or stopped is an error within the peer
// time-out.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/endpoint/support.h"
#include "transport/system/clock.h"

namespace weft::test {
namespace {

constexpr size_t kBytes = 1u << 20;

Knobs quick() {
  Knobs knobs;
  knobs.peer_timeout = milliseconds(500);
  return knobs;
}

// The other process: accepts, receives and verifies `messages`, then waits with a receive posted.
// It is forked before this process has any thread. With messages < 0 it never posts a receive. Exit
// code 0: all was well.
int receiver(int handle_out, int messages) {
  auto b = open_endpoint(quick());
  if (!b) return 1;
  Handle handle;
  auto listener = b->listen(1, &handle);
  if (!listener.ok() || ::write(handle_out, handle.data(), handle.size()) != ssize_t(handle.size()))
    return 2;
  ReceiveFlow* flow = nullptr;
  if (!poll_until([&] { return b->accept(*listener, &flow).ok() && flow; })) return 3;
  b->close_listener(*listener);
  std::vector<std::byte> sink(kBytes);
  auto to = b->register_memory(flow, {sink.data(), sink.size()});
  if (!to.ok()) return 4;
  for (int i = 0; i < messages; ++i) {
    Request* in = post_receive(*b, flow, sink.data(), sink.size(), *to);
    if (!in || !wait(*b, in).ok()) return 5;
    if (sink != pattern(kBytes, static_cast<uint64_t>(i))) return 6;
  }
  if (messages >= 0) post_receive(*b, flow, sink.data(), sink.size(), *to);
  if (messages > 0) return 0;
  for (;;) pause();
}

class OtherProcess {
 public:
  explicit OtherProcess(int messages) {
    int pipe_ends[2];
    EXPECT_EQ(pipe(pipe_ends), 0);
    child_ = fork();
    if (child_ == 0) _exit(receiver(pipe_ends[1], messages));
    size_t got = 0;
    while (got < handle.size()) {
      const ssize_t n = ::read(pipe_ends[0], handle.data() + got, handle.size() - got);
      if (n <= 0) break;
      got += static_cast<size_t>(n);
    }
    EXPECT_EQ(got, handle.size());
    close(pipe_ends[0]);
    close(pipe_ends[1]);
  }
  ~OtherProcess() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  void signal(int number) { kill(child_, number); }
  int exit_code() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
  }
  Handle handle{};

 private:
  pid_t child_ = 0;
};

SendFlow* connect_to(Endpoint& a, const Handle& handle) {
  auto connector = a.start_connect(1, 0, handle);
  EXPECT_TRUE(connector.ok()) << connector.status().words();
  SendFlow* flow = nullptr;
  EXPECT_TRUE(poll_until([&] {
    const Status status = a.connect(*connector, &flow);
    EXPECT_TRUE(status.ok()) << status.words();
    return !status.ok() || flow;
  }));
  return flow;
}

TEST(TwoProcesses, EveryByteArrivesAndTheReceiverMayExitAtOnce) {
  constexpr int kMessages = 20;
  OtherProcess other(kMessages);
  auto a = open_endpoint(quick());
  SendFlow* flow = connect_to(*a, other.handle);
  ASSERT_TRUE(flow);
  for (int i = 0; i < kMessages; ++i) {
    auto source = pattern(kBytes, static_cast<uint64_t>(i));
    auto from = a->register_memory(flow, {source.data(), source.size()});
    ASSERT_TRUE(from.ok());
    Request* out = post_send(*a, flow, source.data(), source.size(), *from);
    ASSERT_TRUE(out);
    const Status sent = wait(*a, out);
    EXPECT_TRUE(sent.ok()) << "message " << i << ": " << sent.words();
    a->deregister(*from);
  }
  EXPECT_EQ(other.exit_code(), 0);
}

class PeerDeath : public ::testing::TestWithParam<int> {};

TEST_P(PeerDeath, IsAnErrorOnASenderThatNeverGotAGrant) {
  OtherProcess other(-1);
  auto a = open_endpoint(quick());
  SendFlow* flow = connect_to(*a, other.handle);
  ASSERT_TRUE(flow);
  other.signal(GetParam());
  EXPECT_TRUE(poll_until([&] {
    Request* out = nullptr;
    return a->send(flow, nullptr, 0, 0, nullptr, &out) == Answer::kFailed;
  })) << "nobody noticed";
  EXPECT_EQ(a->failure_of(*flow).code(), Code::kRemote);
}

TEST_P(PeerDeath, IsAnErrorOnTheSenderThatWaits) {
  OtherProcess other(0);
  auto a = open_endpoint(quick());
  SendFlow* flow = connect_to(*a, other.handle);
  ASSERT_TRUE(flow);
  std::vector<std::byte> source(kBytes);
  auto from = a->register_memory(flow, {source.data(), source.size()});
  Request* out = nullptr;
  other.signal(GetParam());
  // With a grant at hand the send fails; without one the flow does, since an isend was refused.
  Status status;
  EXPECT_TRUE(poll_until([&] {
    if (out) {
      bool done = false;
      status = a->test(out, &done, nullptr);
      if (done) out = nullptr;
      return !status.ok();
    }
    const Answer answer = a->send(flow, source.data(), source.size(), 0, *from, &out);
    if (answer == Answer::kFailed) status = a->failure_of(*flow);
    return answer == Answer::kFailed;
  })) << "nobody noticed";
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_NE(status.words().find("127.0.0.1:"), std::string::npos) << status.words();
  a->close(flow);
  a->finish_context(1);
}

TEST(TwoProcesses, AFlowToAPeerThatWasKilledIsAnErrorAtOnce) {
  OtherProcess other(0);
  Knobs patient;  // an error that waits for the peer time-out would come after more than a minute
  patient.peer_timeout = seconds(90);
  auto a = open_endpoint(patient);
  ASSERT_TRUE(connect_to(*a, other.handle));
  const auto waiting = a->start_connect(1, 0, other.handle);  // nobody will accept it
  ASSERT_TRUE(waiting.ok());
  other.signal(SIGKILL);
  Status status;
  SendFlow* none = nullptr;
  EXPECT_TRUE(poll_until([&] { return !(status = a->connect(*waiting, &none)).ok(); }));
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_NE(status.words().find("127.0.0.1:"), std::string::npos) << status.words();
  const auto next = a->start_connect(1, 0, other.handle);
  if (!next.ok()) return;
  EXPECT_TRUE(poll_until([&] { return !(status = a->connect(*next, &none)).ok(); }));
  EXPECT_EQ(status.code(), Code::kRemote);
}

INSTANTIATE_TEST_SUITE_P(Signals, PeerDeath, ::testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& p) { return p.param == SIGKILL ? "Killed" : "Stopped"; });

}  // namespace
}  // namespace weft::test
