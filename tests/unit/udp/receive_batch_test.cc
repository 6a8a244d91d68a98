// SPDX-License-Identifier: Apache-2.0
// ReceiveBatch between a socket and a sink: nothing shown twice, nothing written where nobody
// pointed.
#include "transport/udp/receive_batch.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/udp/sockets.h"

namespace weft::udp {
namespace {

using testing::Bytes;

// Answers each datagram by a function, and keeps copies of what it was shown.
class RecordingSink : public FabricSink {
 public:
  std::function<void(Datagram&)> answer = [](Datagram&) {};
  std::vector<Bytes> shown;
  size_t batches = 0;
  size_t arrivals = 0;

  void receive(std::span<Datagram> batch) override {
    ++batches;
    for (Datagram& d : batch) {
      shown.emplace_back(d.bytes, d.bytes + d.size);
      d.cookie = shown.size();
      answer(d);
    }
  }
  void arrived(std::span<const Datagram> batch) override {
    for (const Datagram& d : batch) EXPECT_EQ(d.cookie, ++arrivals);
  }
  void landed(std::span<const Landing>) override { ADD_FAILURE(); }
  void completed(std::span<const Completion>) override { ADD_FAILURE(); }
  void path_changed(std::span<const PathChange>) override { ADD_FAILURE(); }
};

struct Net {
  Net() : receiver(testing::udp_socket(&to)), sender(testing::udp_socket(&from)) {}
  void send(size_t bytes, uint8_t fill) {
    testing::send_to(sender.get(), Bytes(bytes, static_cast<std::byte>(fill)), to);
  }
  sockaddr_in to, from;
  FileDescriptor receiver, sender;
  UdpCounters counters;
  HostMemory memory;
  RecordingSink sink;
};

TEST(ReceiveBatch, PlacesWhatFollowsTheHeaderAndNothingElse) {
  Net net;
  ReceiveBatch batch(1472);
  Bytes user(1000, std::byte{0xee});
  net.sink.answer = [&](Datagram& d) {
    d.destination = user.data() + 100;
    d.header_bytes = 64;
  };
  net.send(64 + 300, 7);
  EXPECT_EQ(batch.read(net.receiver.get(), 16, net.counters).taken, 1u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory), 1u);
  Bytes expected(1000, std::byte{0xee});
  std::fill_n(expected.begin() + 100, 300, std::byte{7});
  EXPECT_EQ(user, expected);
  EXPECT_EQ(net.sink.arrivals, 1u);
}

TEST(ReceiveBatch, NowhereAndAHeaderPastTheEndWriteNothing) {
  Net net;
  ReceiveBatch batch(1472);
  Bytes user(2000, std::byte{0xee});
  net.sink.answer = [&](Datagram& d) {
    if (net.sink.shown.size() == 1) return;  // null: nowhere
    d.destination = user.data();
    d.header_bytes = net.sink.shown.size() == 2 ? 100 : 4000;
  };
  for (int i = 0; i < 3; ++i) net.send(100, 7);
  EXPECT_EQ(batch.read(net.receiver.get(), 16, net.counters).taken, 3u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory), 3u);
  EXPECT_EQ(user, Bytes(2000, std::byte{0xee}));
}

TEST(ReceiveBatch, WhatIsLongerThanASlotIsDroppedAndCounted) {
  Net net;
  ReceiveBatch batch(1472);
  net.send(1472, 1);
  net.send(1473, 2);
  net.send(10, 3);
  EXPECT_EQ(batch.read(net.receiver.get(), 16, net.counters).taken, 3u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory), 2u);
  ASSERT_EQ(net.sink.shown.size(), 2u);
  EXPECT_EQ(net.sink.shown[0].size(), 1472u);
  EXPECT_EQ(net.sink.shown[1], Bytes(10, std::byte{3}));
  EXPECT_EQ(net.counters.truncated, 1u);
  EXPECT_EQ(net.counters.received, 2u);
}

TEST(ReceiveBatch, AFullArenaLeavesTheRestInTheSocket) {
  Net net;
  ReceiveBatch batch(65507);
  const size_t slots = batch.room();
  ASSERT_GE(slots, 8u);
  ASSERT_LE(slots, 64u);
  const size_t count = slots + 3;
  for (size_t i = 0; i < count; ++i) net.send(20, static_cast<uint8_t>(i));
  const auto first = batch.read(net.receiver.get(), 1000, net.counters);
  EXPECT_EQ(first.taken, slots);
  EXPECT_FALSE(first.drained);
  EXPECT_EQ(batch.read(net.receiver.get(), 1000, net.counters).taken, 0u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory), slots);
  const auto second = batch.read(net.receiver.get(), 1000, net.counters);
  EXPECT_EQ(second.taken, 3u);
  EXPECT_TRUE(second.drained);
  EXPECT_EQ(batch.deliver(net.sink, net.memory), 3u);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(net.sink.shown[i], Bytes(20, static_cast<std::byte>(i)));
  }
}

TEST(ReceiveBatch, NothingToDeliverCallsNobody) {
  Net net;
  ReceiveBatch batch(1472);
  const auto read = batch.read(net.receiver.get(), 16, net.counters);
  EXPECT_EQ(read.taken, 0u);
  EXPECT_TRUE(read.drained);
  EXPECT_EQ(batch.deliver(net.sink, net.memory), 0u);
  EXPECT_EQ(net.sink.batches, 0u);
  EXPECT_EQ(net.counters.receive_errors, 0u);
}

TEST(ReceiveBatch, AnIcmpErrorHidesNoDatagram) {
  Net net;
  net.send(10, 7);
  sockaddr_in gone_name;
  testing::udp_socket(&gone_name).reset();
  // Connected to a port that nobody has, what it sends comes back as an error on the next call.
  const auto* gone = reinterpret_cast<const sockaddr*>(&gone_name);
  ASSERT_EQ(::connect(net.receiver.get(), gone, sizeof gone_name), 0);
  ASSERT_EQ(::send(net.receiver.get(), "x", 1, 0), 1);
  ReceiveBatch batch(1472);
  const auto read = batch.read(net.receiver.get(), 16, net.counters);
  EXPECT_EQ(net.counters.receive_errors, 1u);
  EXPECT_EQ(read.taken, 1u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory), 1u);
  EXPECT_EQ(net.sink.shown[0], Bytes(10, std::byte{7}));
}

}  // namespace
}  // namespace weft::udp
