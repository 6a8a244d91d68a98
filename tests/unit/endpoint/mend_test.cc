// SPDX-License-Identifier: Apache-2.0
// Streams of living connections that break: the next flow has them mended, no request is served
// twice, and who has only half of what it takes to resume is a stranger. (Streams whose way dies
// silently need a network: tests/bed/set_up_test.py.)
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <thread>

#include "tests/unit/endpoint/support.h"
#include "transport/memory.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"
#include "transport/wire/handshake.h"

namespace weft::test {
namespace {

wire::ListenHandle decoded(const Handle& handle) {
  wire::ListenHandle out;
  EXPECT_TRUE(wire::decode_handle(handle, &out));
  return out;
}

// Ends every stream of this process to that port, as if a firewall had forgotten it. How many.
int break_streams(uint16_t port) {
  int broken = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    int type = 0;
    socklen_t size = sizeof type;
    SocketAddress remote;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) continue;
    if (getpeername(fd, remote.out(), remote.length()) != 0 || remote.port() != port) continue;
    broken += ::shutdown(fd, SHUT_RDWR) == 0;
  }
  closedir(directory);
  return broken;
}

uint16_t port_of(Endpoint& endpoint) {
  Handle handle;
  Listener* listener = *endpoint.listen(99, &handle);
  endpoint.close_listener(listener);
  return decoded(handle).port;
}

// One more flow, polled like connect(), with a break after so many polls.
Pair connect_broken(Endpoint& from, Endpoint& to, int polls) {
  const uint16_t port = port_of(to);
  Handle handle;
  Pair pair;
  Listener* listener = *to.listen(1, &handle);
  Connector* connector = *from.start_connect(1, 0, handle);
  EXPECT_TRUE(poll_until([&] {
    if (polls-- == 0) break_streams(port);
    if (!pair.send) {
      const Status status = from.connect(connector, &pair.send);
      EXPECT_TRUE(status.ok()) << status.words();
      if (!status.ok()) return true;
    }
    if (!pair.receive) {
      EXPECT_TRUE(to.accept(listener, &pair.receive).ok());
    }
    return pair.send && pair.receive;
  })) << "broken after "
      << polls;
  ReceiveFlow* another = nullptr;
  EXPECT_TRUE(to.accept(listener, &another).ok());
  EXPECT_EQ(another, nullptr) << "one request, two flows";
  to.close_listener(listener);
  return pair;
}

TEST(Mend, NewFlowsComeUpOverAConnectionWhoseStreamBrokeAndOldOnesGoOn) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  const Pair first = connect(*a, *b);
  ASSERT_TRUE(first.send && first.receive);
  const uint16_t port = port_of(*b);
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(break_streams(port), 1) << "round " << round;
    const Pair next = connect(*a, *b);
    ASSERT_TRUE(next.send && next.receive) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, next, 10000));
    ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, first, 10000));
    EXPECT_EQ(a->statistics().connections, 1u) << "round " << round;
    EXPECT_EQ(b->statistics().connections, 1u) << "round " << round;
  }
}

TEST(Mend, ABreakAtAnyMomentOfARequestIsMendedAndNothingIsServedTwice) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  const Pair first = connect(*a, *b);
  for (int polls = 0; polls < 40; ++polls) {
    const Pair next = connect_broken(*a, *b, polls);
    ASSERT_TRUE(next.send && next.receive) << "broken after " << polls << " polls";
    ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, next, 1000)) << "after " << polls << " polls";
  }
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, first, 10000));
  EXPECT_EQ(a->statistics().connections, 1u);
  EXPECT_EQ(b->statistics().connections, 1u);
}

TEST(Mend, BothEndsMayWantAFlowAtOnce) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  const Pair first = connect(*a, *b);
  const uint16_t ports[] = {port_of(*a), port_of(*b)};
  for (int round = 0; round < 20; ++round) {
    EXPECT_GE(break_streams(ports[0]) + break_streams(ports[1]), 1);
    Pair there, back;
    std::thread other([&] { back = connect(*b, *a); });
    there = connect(*a, *b);
    other.join();
    ASSERT_TRUE(there.send && there.receive && back.send && back.receive) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, there, 5000));
    ASSERT_NO_FATAL_FAILURE(transfer(*b, *a, back, 5000));
    EXPECT_EQ(a->statistics().connections, 1u) << "round " << round;
    EXPECT_EQ(b->statistics().connections, 1u) << "round " << round;
  }
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, first, 10000));
}

TEST(Mend, BreaksLeaveNoDescriptor) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  (void)connect(*a, *b);
  const uint16_t port = port_of(*b);
  int before = 0;
  for (int round = 0; round < 30; ++round) {
    break_streams(port);
    ASSERT_TRUE(connect(*a, *b).send);
    if (round == 5) before = open_descriptors();
  }
  EXPECT_TRUE(poll_until([&] { return open_descriptors() <= before; }))
      << open_descriptors() - before;
}

// The connecting end, by hand.
class Speaker {
 public:
  explicit Speaker(const wire::ListenHandle& to) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const SocketAddress at(to.address, to.port);
    EXPECT_EQ(::connect(fd_.get(), at.get(), at.size()), 0);
    const timeval limit{20, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void say(const std::vector<std::byte>& bytes) {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  // The next frame's body; type 0: the stream is over.
  std::vector<std::byte> hear(wire::FrameType* type) {
    std::vector<std::byte> head = exactly(wire::kFrameHeaderBytes);
    wire::FrameHeader header;
    *type = wire::FrameType{};
    if (head.empty()) return {};
    EXPECT_TRUE(wire::decode_frame_header(head, &header));
    *type = static_cast<wire::FrameType>(header.type);
    return exactly(header.body_bytes);
  }

 private:
  std::vector<std::byte> exactly(size_t bytes) {
    std::vector<std::byte> out(bytes);
    if (bytes == 0) return out;  // recv() would wait for more
    const ssize_t got = ::recv(fd_.get(), out.data(), bytes, MSG_WAITALL);
    if (got != ssize_t(bytes)) out.clear();
    return out;
  }
  FileDescriptor fd_;
};

// A connection to `b` made by hand, over a link of its own.
class ByHand : public ::testing::Test {
 protected:
  void SetUp() override {
    UdpConfig udp;
    udp.address = IpAddress::v4(127, 0, 0, 1);
    udp.sockets = 1;
    udp.mtu = 65536;
    auto fabric = open_udp(udp, memory_);
    ASSERT_TRUE(fabric.ok()) << fabric.status().words();
    fabric_ = std::move(*fabric);
    ASSERT_TRUE(fabric_->create_link(&link_).ok());
    b_ = open_endpoint();
    listener_ = *b_->listen(1, &handle_);
    to_ = decoded(handle_);
    speaker_ = std::make_unique<Speaker>(to_);
    wire::Hello hello;
    hello.cookie = to_.cookie;
    hello.to_incarnation = to_.incarnation;
    hello.to_context = to_.context;
    hello.self.incarnation = 1;
    hello.self.segment_bytes = 1408;
    hello.self.paths = 1;
    hello.self.offloads = fabric_->offloads();
    hello.self.fabric = fabric_->name();
    hello.self.link_address = link_;
    std::vector<std::byte> frame;
    wire::append_hello(&frame, hello);
    speaker_->say(frame);
    wire::FrameType type;
    const auto welcome = speaker_->hear(&type);
    ASSERT_EQ(type, wire::FrameType::kWelcome);
    ASSERT_TRUE(wire::decode_welcome(welcome, &theirs_));
  }
  // Asks on a stream; what was answered once somebody accepts.
  uint32_t ask(Speaker& speaker, uint32_t request, int* accepted) {
    std::vector<std::byte> frame;
    wire::append_open(&frame, {request, to_.cookie});
    speaker.say(frame);
    std::thread accepting([&] {
      for (int i = 0; i < 100; ++i) {
        ReceiveFlow* flow = nullptr;
        EXPECT_TRUE(b_->accept(listener_, &flow).ok());
        *accepted += flow != nullptr;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    wire::FrameType type;
    const auto body = speaker.hear(&type);
    accepting.join();
    wire::Opened opened;
    EXPECT_EQ(type, wire::FrameType::kOpened);
    EXPECT_TRUE(wire::decode_opened(body, &opened));
    EXPECT_EQ(opened.request, request);
    return opened.flow;
  }
  static std::vector<std::byte> resume(const wire::Address& named) {
    std::vector<std::byte> frame;
    wire::append_resume(&frame, named);
    return frame;
  }

  HostMemory memory_;
  std::unique_ptr<Fabric> fabric_;
  LinkAddress link_;
  std::unique_ptr<Endpoint> b_;
  Listener* listener_ = nullptr;
  Handle handle_;
  wire::ListenHandle to_;
  std::unique_ptr<Speaker> speaker_;
  wire::Introduction theirs_;
};

TEST_F(ByHand, ARequestThatIsAskedAgainGetsTheSameFlow) {
  int accepted = 0;
  const uint32_t flow = ask(*speaker_, 5, &accepted);
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(ask(*speaker_, 5, &accepted), flow);
  EXPECT_EQ(accepted, 1) << "on the same stream";
  Speaker second(to_);
  second.say(resume(theirs_.address));
  wire::FrameType type;
  (void)second.hear(&type);
  ASSERT_EQ(type, wire::FrameType::kResumed);
  EXPECT_EQ(ask(second, 5, &accepted), flow);
  EXPECT_EQ(accepted, 1) << "on another";
  EXPECT_NE(ask(second, 6, &accepted), flow);
  EXPECT_EQ(accepted, 2) << "another request is another flow";
}

TEST_F(ByHand, ARequestThatWaitsWaitsOnce) {
  std::vector<std::byte> frames;
  for (int i = 0; i < 10; ++i) wire::append_open(&frames, {7, to_.cookie});
  speaker_->say(frames);
  int accepted = 0;
  (void)ask(*speaker_, 7, &accepted);
  EXPECT_EQ(accepted, 1);
}

TEST_F(ByHand, WhatWasRefusedStaysRefused) {
  std::vector<std::byte> frame;
  wire::Cookie wrong{};
  wire::append_open(&frame, {8, wrong});
  speaker_->say(frame);
  frame.clear();
  wire::append_open(&frame, {8, to_.cookie});  // the same request
  speaker_->say(frame);
  for (int i = 0; i < 2; ++i) {
    wire::FrameType type;
    (void)speaker_->hear(&type);
    EXPECT_EQ(type, wire::FrameType::kRefused);
  }
}

TEST_F(ByHand, AWrongNameOrTokenResumesNothingAndIsAStranger) {
  const uint64_t before = b_->statistics().intruders;
  wire::Address wrong[] = {theirs_.address, theirs_.address, {}};
  wrong[0].token ^= 1;
  wrong[1].connection += 1;
  for (const wire::Address& named : wrong) {
    Speaker stranger(to_);
    stranger.say(resume(named));
    wire::FrameType type;
    (void)stranger.hear(&type);
    EXPECT_EQ(type, wire::FrameType{}) << "it got an answer";
  }
  Speaker other_version(to_);
  auto frame = resume(theirs_.address);
  frame[4] = std::byte{9};
  other_version.say(frame);
  wire::FrameType type;
  (void)other_version.hear(&type);
  EXPECT_EQ(type, wire::FrameType{});
  EXPECT_EQ(b_->statistics().intruders, before + 4);
  int accepted = 0;
  (void)ask(*speaker_, 5, &accepted);
  EXPECT_EQ(accepted, 1) << "the stream that was there is there";
}

TEST_F(ByHand, WhoDialedAndGoesWithoutAWordCostsNothing) {
  const EndpointStatistics before = b_->statistics();
  const int descriptors = open_descriptors();
  for (int i = 0; i < 500; ++i) Speaker lost_the_race(to_);
  int accepted = 0;
  (void)ask(*speaker_, 5, &accepted);
  EXPECT_EQ(accepted, 1);
  EXPECT_TRUE(poll_until([&] { return open_descriptors() <= descriptors; }));
  const EndpointStatistics after = b_->statistics();
  EXPECT_EQ(after.intruders, before.intruders);
  EXPECT_EQ(after.connections, before.connections);
}

}  // namespace
}  // namespace weft::test
