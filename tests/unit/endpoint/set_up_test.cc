// SPDX-License-Identifier: Apache-2.0
// Connecting: to oneself, at once from both ends, to nobody, and between ends that do not fit.
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "tests/unit/endpoint/support.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"
#include "transport/wire/handshake.h"

namespace weft::test {
namespace {

TEST(SetUp, ToOneselfFromOneThread) {
  auto a = open_endpoint();
  const Pair flow = connect(*a, *a);
  ASSERT_TRUE(flow.send && flow.receive);
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *a, flow, 100000));
  const Pair second = connect(*a, *a, 1, 2);  // two communicators of one process
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *a, second, 100000));
  a->close(flow.send);
  a->close(flow.receive);
  a->finish_context(1);
  a->finish_context(2);
}

bool host_has_ipv6() {
  const FileDescriptor s(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress name(IpAddress::v6_loopback(), 0);
  return s && ::bind(s.get(), name.get(), name.size()) == 0;
}

TEST(SetUp, OverIpv6) {
  if (!host_has_ipv6()) GTEST_SKIP() << "this host has no ::1";
  Knobs knobs;
  knobs.address = IpAddress::v6_loopback();
  auto a = open_endpoint(knobs);
  auto b = open_endpoint(knobs);
  ASSERT_TRUE(a && b);
  const Pair flow = connect(*a, *b);
  ASSERT_TRUE(flow.send && flow.receive);
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, flow, 1000000));
}

TEST(SetUp, BetweenTheFamiliesFailsInWords) {
  if (!host_has_ipv6()) GTEST_SKIP() << "this host has no ::1";
  Knobs knobs;
  auto a = open_endpoint(knobs);
  knobs.address = IpAddress::v6_loopback();
  auto b = open_endpoint(knobs);
  ASSERT_TRUE(a && b);
  Handle handle;
  ASSERT_TRUE(b->listen(1, &handle).ok());
  const Result<Connector*> connector = a->start_connect(1, 0, handle);
  Status status = connector.status();
  if (connector.ok()) {
    SendFlow* flow = nullptr;
    EXPECT_TRUE(poll_until([&] { return !(status = a->connect(*connector, &flow)).ok(); }));
  }
  EXPECT_NE(status.words().find("WEFT_FAMILY"), std::string::npos) << status.words();
}

TEST(SetUp, BothEndsAtOnceGetOneConnection) {
  for (int round = 0; round < 30; ++round) {
    auto a = open_endpoint();
    auto b = open_endpoint();
    Pair forth, back;
    std::atomic<int> ready{0};
    const auto side = [&ready](Endpoint& self, Handle* mine, const Handle* theirs, SendFlow** send,
                               ReceiveFlow** receive) {
      Listener* listener = *self.listen(1, mine);
      for (++ready; ready < 2;) std::this_thread::yield();
      Connector* connector = *self.start_connect(1, 0, *theirs);
      EXPECT_TRUE(poll_until([&] {
        if (!*send) {
          const Status status = self.connect(connector, send);
          EXPECT_TRUE(status.ok()) << status.words();
        }
        if (!*receive) {
          EXPECT_TRUE(self.accept(listener, receive).ok());
        }
        return *send && *receive;
      }));
      self.close_listener(listener);
    };
    Handle ha, hb;
    std::thread other([&] { side(*b, &hb, &ha, &back.send, &forth.receive); });
    side(*a, &ha, &hb, &forth.send, &back.receive);
    other.join();
    ASSERT_TRUE(forth.send && forth.receive && back.send && back.receive);
    EXPECT_EQ(a->statistics().connections, 1u) << "round " << round;
    EXPECT_EQ(b->statistics().connections, 1u) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, forth, 5000));
    ASSERT_NO_FATAL_FAILURE(transfer(*b, *a, back, 5000));
  }
}

TEST(SetUp, ConnectWaitsForAcceptAndNotForTraffic) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  Handle handle;
  Listener* listener = *b->listen(1, &handle);
  Connector* connector = *a->start_connect(1, 0, handle);
  SendFlow* send = nullptr;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(a->connect(connector, &send).ok());
    ASSERT_EQ(send, nullptr) << "nobody has accepted";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ReceiveFlow* receive = nullptr;
  ASSERT_TRUE(poll_until([&] { return b->accept(listener, &receive).ok() && receive; }));
  b->close_listener(listener);
  ASSERT_TRUE(poll_until([&] { return a->connect(connector, &send).ok() && send; }));
}

TEST(SetUp, WhatIsNoHandleIsRefusedInWords) {
  auto a = open_endpoint();
  Handle handle;
  handle.fill(std::byte{0x5a});
  const auto connector = a->start_connect(1, 0, handle);
  ASSERT_FALSE(connector.ok());
  EXPECT_EQ(connector.status().code(), Code::kInvalidArgument);
}

Status connect_status(Endpoint& endpoint, Connector* connector) {
  Status status;
  EXPECT_TRUE(poll_until([&] {
    SendFlow* flow = nullptr;
    status = endpoint.connect(connector, &flow);
    return !status.ok() || flow;
  }));
  return status;
}

TEST(SetUp, APeerThatIsGoneIsAnErrorThatNamesIt) {
  auto a = open_endpoint();
  Handle handle;
  { ASSERT_TRUE(open_endpoint()->listen(1, &handle).ok()); }
  const auto connector = a->start_connect(1, 0, handle);
  if (!connector.ok()) GTEST_SKIP() << "refused at once: " << connector.status().words();
  const Status status = connect_status(*a, *connector);
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_NE(status.words().find("127.0.0.1:"), std::string::npos) << status.words();
}

TEST(SetUp, AClosedListenerIsAnErrorAndTheConnectionLivesOn) {
  Knobs knobs;
  knobs.peer_timeout = milliseconds(500);
  auto a = open_endpoint(knobs);
  auto b = open_endpoint(knobs);
  Handle handle;
  Listener* listener = *b->listen(1, &handle);
  b->close_listener(listener);
  Status status = connect_status(*a, *a->start_connect(1, 0, handle));
  EXPECT_EQ(status.code(), Code::kRemote) << "no stream, no listener";
  EXPECT_EQ(a->statistics().connections, 0u);

  const Pair flow = connect(*a, *b);
  listener = *b->listen(1, &handle);
  b->close_listener(listener);
  status = connect_status(*a, *a->start_connect(1, 0, handle));
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_NE(status.words().find("nobody listens"), std::string::npos) << status.words();
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, flow, 100000));
}

TEST(SetUp, ClosingAListenerRefusesWhoWaitsThere) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  Handle handle;
  Listener* listener = *b->listen(1, &handle);
  Connector* connector = *a->start_connect(1, 0, handle);
  SendFlow* send = nullptr;
  ASSERT_TRUE(poll_until([&] {
    EXPECT_TRUE(a->connect(connector, &send).ok());
    return b->statistics().connections == 1;
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  b->close_listener(listener);
  EXPECT_EQ(connect_status(*a, connector).code(), Code::kRemote);
}

TEST(SetUp, SegmentsAreAsLargeAsBothEndsAllow) {
  Knobs small, large;
  small.segment_bytes = 1408;
  large.segment_bytes = 8192;
  auto a = open_endpoint(small);
  auto b = open_endpoint(large);
  const Pair forth = connect(*a, *b);
  const Pair back = connect(*b, *a);
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, forth, 1000000));
  ASSERT_NO_FATAL_FAILURE(transfer(*b, *a, back, 1000000));
  const auto packets = [](Endpoint& e) {
    uint64_t sum = 0;
    for (const PathCounters& p : e.statistics().paths) sum += p.packets;
    return sum;
  };
  EXPECT_GE(packets(*b), 1000000u / 1408);
}

// Speaks to the listener of `handle` by hand.
class Speaker {
 public:
  explicit Speaker(const Handle& handle) {
    EXPECT_TRUE(wire::decode_handle(handle, &to));
    fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(to.port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    const timeval limit{20, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void say(const std::vector<std::byte>& bytes) {
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  std::vector<std::byte> hear() {  // until the other end closes
    std::vector<std::byte> all, some(4096);
    for (ssize_t n; (n = ::recv(fd.get(), some.data(), some.size(), 0)) > 0;) {
      all.insert(all.end(), some.begin(), some.begin() + n);
    }
    return all;
  }
  wire::Hello hello() const {
    wire::Hello h;
    h.cookie = to.cookie;
    h.to_incarnation = to.incarnation;
    h.to_context = to.context;
    h.self.incarnation = 1;
    h.self.segment_bytes = 1408;
    h.self.paths = 1;
    h.self.fabric = "udp";
    return h;
  }
  wire::ListenHandle to;
  FileDescriptor fd;
};

wire::Refused refusal(const std::vector<std::byte>& bytes) {
  wire::FrameHeader header;
  wire::Refused out;
  EXPECT_TRUE(wire::decode_frame_header(bytes, &header));
  EXPECT_EQ(header.type, static_cast<uint8_t>(wire::FrameType::kRefused));
  EXPECT_TRUE(wire::decode_refused(std::span(bytes).subspan(wire::kFrameHeaderBytes), &out));
  return out;
}

TEST(SetUp, AnotherVersionOrFabricIsRefusedInWordsThatNameBoth) {
  auto b = open_endpoint();
  Handle handle;
  ASSERT_TRUE(b->listen(1, &handle).ok());
  {
    Speaker s(handle);
    std::vector<std::byte> frame;
    wire::append_hello(&frame, s.hello());
    frame[4] = std::byte{9};
    s.say(frame);
    const wire::Refused r = refusal(s.hear());
    EXPECT_EQ(r.code, wire::Refusal::kSpeech);
    EXPECT_NE(r.words.find("version 1"), std::string::npos) << r.words;
    EXPECT_NE(r.words.find("version 9"), std::string::npos) << r.words;
  }
  {
    Speaker s(handle);
    std::vector<std::byte> frame;
    wire::Hello hello = s.hello();
    hello.self.fabric = "verbs";
    hello.self.offloads.places = true;
    wire::append_hello(&frame, hello);
    s.say(frame);
    const wire::Refused r = refusal(s.hear());
    EXPECT_EQ(r.code, wire::Refusal::kFabric);
    EXPECT_NE(r.words.find("\"udp\""), std::string::npos) << r.words;
    EXPECT_NE(r.words.find("\"verbs\""), std::string::npos) << r.words;
  }
  {
    Speaker s(handle);
    std::vector<std::byte> frame;
    wire::append_hello(&frame, s.hello());  // its link address is empty: the fabric refuses it
    s.say(frame);
    EXPECT_EQ(refusal(s.hear()).code, wire::Refusal::kFailed);
  }
  EXPECT_EQ(b->statistics().connections, 0u);
}

}  // namespace
}  // namespace weft::test
