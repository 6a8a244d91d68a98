// SPDX-License-Identifier: Apache-2.0
// Processes that stop for a while, fall silent after their last receive, or die and come again at
// the same address: what the other end makes of it.
//
// Roles: `echo` sends back what it gets until the other end leaves; `patient` is one with a longer
// peer time-out. `last_receive` never calls again after its last receive was reported. `replaced`
// sees its peer die, and another one take its place and its ports.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "tests/plugin/holdings.h"
#include "tests/plugin/own_network.h"
#include "tests/plugin/peer.h"

namespace weft::plugin_test {
namespace {

constexpr size_t kBytes = kPingBytes;
constexpr int kRounds = 20;

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

void patient(int fd) {
  ::setenv("WEFT_PEER_TIMEOUT_MS", "20000", 1);
  echo(fd);
}

void last_receive(int fd) {
  Context context;
  Link link(context, fd);
  ASSERT_TRUE(link.up());
  Buffer to(kRounds * kBytes);
  Registered sink(link.receive, to);
  std::vector<void*> receives;
  for (int i = 0; i < kRounds; ++i) {
    receives.push_back(post_receive(link.receive, to.data() + i * kBytes, kBytes, 0, sink.get()));
  }
  ASSERT_EQ(wait_all(receives), nccl::kSuccess);
  hear(fd);  // not one call until the sender says that it has finished
  sink.drop();
}

bool few_ports() {
  std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
  range << "20000 20199" << std::flush;
  return range.good();
}

void occupy_udp_ports_but(const std::set<int>& spared) {
  for (int port = 20000; port < 20200; ++port) {
    if (spared.count(port) != 0) continue;
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(port));
    (void)::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at);  // or somebody has it
  }
}

void replaced(int fd) {
  if (!own_network() || !few_ports()) {
    say(fd, 'n');
    return;
  }
  ::setenv("WEFT_PATHS", "8", 1);
  Context context;
  auto first = std::make_unique<Peer>("echo");
  Link old(context, first->fd());
  ASSERT_TRUE(old.up());
  ping(old, 1);
  const std::set<int> ports = udp_ports(first->pid());
  ASSERT_GE(ports.size(), 8u);
  Buffer memory(kBytes);
  Registered source(old.send, memory), sink(old.receive, memory);
  void* receive = post_receive(old.receive, memory.data(), kBytes, 0, sink.get());
  void* send = post_send(old.send, memory.data(), kBytes, 0, source.get());
  first->kill();  // with our packets on the way
  occupy_udp_ports_but(ports);
  Peer second("echo");
  {
    Link link(context, second.fd());
    ASSERT_TRUE(link.up());
    const std::set<int> again = udp_ports(second.pid());
    EXPECT_FALSE(again.empty());
    for (const int port : again) EXPECT_EQ(ports.count(port), 1u) << port;
    for (uint64_t i = 0; i < 50; ++i) ping(link, i);
    EXPECT_EQ(wait(receive), nccl::kRemoteError);
    const nccl::Result sent = wait(send);  // it may have arrived before the end
    EXPECT_TRUE(sent == nccl::kRemoteError || sent == nccl::kSuccess) << sent;
    for (uint64_t i = 0; i < 50; ++i) ping(link, i);
  }
  second.expect_good_end();
  say(fd, testing::Test::HasFailure() ? 'b' : 'g');
}

const Peer& stop(const Peer& peer) {
  ::kill(peer.pid(), SIGSTOP);
  return peer;
}

TEST(PluginRestart, AProcessStoppedForLessThanTheLimitIsNotDead) {
  Context context;
  Peer peer("echo");
  {
    Link link(context, peer.fd());
    ASSERT_TRUE(link.up());
    for (int round = 0; round < 5; ++round) {
      SCOPED_TRACE(round);
      std::thread wakes;
      if (round % 2 == 0) {  // in the middle of a message, or between two
        stop(peer);
        wakes = std::thread([&] {
          sleep_ms(kPeerTimeoutMs * 6 / 10);
          ::kill(peer.pid(), SIGCONT);
        });
      } else {
        wakes = std::thread([&] {
          stop(peer);
          sleep_ms(kPeerTimeoutMs * 6 / 10);
          ::kill(peer.pid(), SIGCONT);
        });
      }
      for (int i = 0; i < 3; ++i) ping(link, static_cast<uint64_t>(round * 10 + i));
      wakes.join();
    }
  }
  peer.expect_good_end();
}

// Who is stopped cannot confirm that a communicator is over. Its end gives him a moment, and in
// that moment others go on setting up: without that, a few calls would be all they get.
TEST(PluginRestart, AnEndBesideAStoppedPeerHoldsUpNobodyElse) {
  WEFT_NEEDS_CONTEXTS();
  Context bystander;
  Pair pair(bystander, bystander);
  ASSERT_TRUE(pair.up());
  std::atomic<bool> over{false};
  int registrations = 0;
  {
    Peer peers[] = {Peer("echo"), Peer("echo"), Peer("echo")};
    Context contexts[3];
    for (int i = 0; i < 3; ++i) {
      Link link(contexts[i], peers[i].fd());
      ASSERT_TRUE(link.up());
      ping(link, 1);
      stop(peers[i]);
    }
    std::thread ends([&] {
      for (Context& context : contexts) context.finalize();
      over = true;
    });
    Buffer memory(4096);
    for (; !over; ++registrations) Registered one(pair.send(), memory);
    ends.join();
    for (Peer& peer : peers) peer.kill();
  }
  EXPECT_GT(registrations, 100);
}

// Time in which we did not look is not the peer's silence.
TEST(PluginRestart, WhoWasStoppedForLongerThanItsOwnLimitFindsItsPeerAlive) {
  Context context;
  Peer peer("patient");
  {
    Link link(context, peer.fd());
    ASSERT_TRUE(link.up());
    Buffer to(kBytes);
    Registered sink(link.receive, to);
    ping(link, 1);
    void* waits = post_receive(link.receive, to.data(), kBytes, 0, sink.get());
    const pid_t us = ::getpid();
    const pid_t alarm = ::fork();
    if (alarm == 0) {
      ::kill(us, SIGSTOP);
      sleep_ms(kPeerTimeoutMs * 2);
      ::kill(us, SIGCONT);
      ::_exit(0);
    }
    ::waitpid(alarm, nullptr, 0);
    int done = 1;
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(net().test(waits, &done, nullptr), nccl::kSuccess) << take_log();
      ASSERT_EQ(done, 0);
    }
    Registered source(link.send, to);
    EXPECT_EQ(wait(post_send(link.send, to.data(), 100, 0, source.get())), nccl::kSuccess);
    EXPECT_EQ(wait(waits), nccl::kSuccess) << take_log();
  }
  peer.expect_good_end();
}

TEST(PluginRestart, AReceiverThatNeverCallsAgainStillLetsTheSenderFinish) {
  for (int round = 0; round < 3; ++round) {
    Context context;
    Peer peer("last_receive");
    {
      Link link(context, peer.fd());
      ASSERT_TRUE(link.up());
      Buffer from(kRounds * kBytes);
      Registered source(link.send, from);
      std::vector<void*> sends;
      for (int i = 0; i < kRounds; ++i) {
        sends.push_back(post_send(link.send, from.data() + i * kBytes, kBytes, 0, source.get()));
      }
      EXPECT_EQ(wait_all(sends), nccl::kSuccess) << take_log();
      say(peer.fd(), 'f');
    }
    peer.expect_good_end();
  }
}

TEST(PluginRestart, APeerThatComesAgainAtTheSameAddressIsANewOne) {
  Peer world("replaced");
  const char word = hear(world.fd());
  if (word == 'n') GTEST_SKIP() << "a network namespace needs root";
  EXPECT_EQ(word, 'g');
  world.expect_good_end();
}

}  // namespace

const std::map<std::string, Role> kRoles = {
    {"echo", echo}, {"patient", patient}, {"last_receive", last_receive}, {"replaced", replaced}};

}  // namespace weft::plugin_test
