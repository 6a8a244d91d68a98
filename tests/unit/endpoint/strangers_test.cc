// SPDX-License-Identifier: Apache-2.0
// Port scanners, garbage, slow and silent streams: none gets an answer, none disturbs who belongs
// here.
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "tests/unit/endpoint/support.h"
#include "transport/base/random.h"
#include "transport/system/file_descriptor.h"
#include "transport/wire/handshake.h"

namespace weft::test {
namespace {

FileDescriptor dial(uint16_t port) {
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  const timeval limit{20, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return fd;
}

uint16_t port_of(const Handle& handle) {
  wire::ListenHandle h;
  EXPECT_TRUE(wire::decode_handle(handle, &h));
  return h.port;
}

TEST(Strangers, GarbageScannersAndWrongCookiesGetNothing) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  Handle handle;
  Listener* listener = *b->listen(1, &handle);
  const uint16_t port = port_of(handle);
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(dial(port));  // half of a port scan
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    FileDescriptor fd = dial(port);
    std::vector<std::byte> bytes;
    if (seed % 2 == 0) {
      bytes.resize(1 + random.below(20000));
      for (auto& x : bytes) x = static_cast<std::byte>(random.next());
    } else {
      wire::Hello hello;  // right in everything but the cookie
      hello.self.segment_bytes = 1408;
      hello.self.paths = 1;
      hello.self.fabric = "udp";
      for (auto& x : hello.cookie) x = static_cast<std::byte>(random.next());
      wire::append_hello(&bytes, hello);
    }
    (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (seed % 4 == 1) {
      std::byte answer;
      EXPECT_LE(::recv(fd.get(), &answer, 1, 0), 0) << "a stranger got an answer";
    }
  }
  Connector* connector = *a->start_connect(1, 0, handle);
  Pair pair;
  ASSERT_TRUE(poll_until([&] {
    if (!pair.send) {
      EXPECT_TRUE(a->connect(connector, &pair.send).ok());
    }
    if (!pair.receive) {
      EXPECT_TRUE(b->accept(listener, &pair.receive).ok());
    }
    return pair.send && pair.receive;
  }));
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, pair, 100000));
  EXPECT_GE(b->statistics().intruders, 90u);
}

TEST(Strangers, MoreOfThemThanThereIsRoomForGiveWayAndTheirDescriptorsAreFreed) {
  Knobs knobs;
  knobs.peer_timeout = milliseconds(500);
  auto a = open_endpoint(knobs);
  auto b = open_endpoint(knobs);
  Handle handle;
  Listener* listener = *b->listen(1, &handle);
  const int before = open_descriptors();
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 400; ++i) silent.push_back(dial(port_of(handle)));
  Connector* connector = *a->start_connect(1, 0, handle);
  Pair pair;
  ASSERT_TRUE(poll_until([&] {
    if (!pair.send) {
      const Status status = a->connect(connector, &pair.send);
      EXPECT_TRUE(status.ok()) << status.words();
      if (!status.ok()) return true;
    }
    if (!pair.receive) {
      EXPECT_TRUE(b->accept(listener, &pair.receive).ok());
    }
    return pair.send && pair.receive;
  }));
  ASSERT_TRUE(pair.send);
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, pair, 1000));
  // 400 of ours are open, and the two ends of the stream; the endpoint's own go at their deadline.
  EXPECT_TRUE(poll_until([&] { return open_descriptors() <= before + 402; }))
      << open_descriptors() - before;
}

TEST(Strangers, AHelloThatDripsInIsHeardAndOneThatStopsHalfwayIsNot) {
  Knobs knobs;
  knobs.peer_timeout = milliseconds(500);
  auto b = open_endpoint(knobs);
  Handle handle;
  ASSERT_TRUE(b->listen(1, &handle).ok());
  wire::ListenHandle to;
  ASSERT_TRUE(wire::decode_handle(handle, &to));
  wire::Hello hello;
  hello.cookie = to.cookie;
  hello.to_incarnation = to.incarnation;
  hello.to_context = to.context;
  hello.self.segment_bytes = 1408;
  hello.self.paths = 1;
  hello.self.fabric = "no such";
  std::vector<std::byte> frame;
  wire::append_hello(&frame, hello);
  std::byte answer{};
  {
    FileDescriptor fd = dial(to.port);
    for (std::byte x : frame) ASSERT_EQ(::send(fd.get(), &x, 1, MSG_NOSIGNAL), 1);
    EXPECT_EQ(::recv(fd.get(), &answer, 1, 0), 1);
  }
  {
    FileDescriptor fd = dial(to.port);
    ASSERT_EQ(::send(fd.get(), frame.data(), frame.size() / 2, MSG_NOSIGNAL),
              static_cast<ssize_t>(frame.size() / 2));
    EXPECT_LE(::recv(fd.get(), &answer, 1, 0), 0) << "its deadline passes without help";
  }
}

}  // namespace
}  // namespace weft::test
