// SPDX-License-Identifier: Apache-2.0
// ReceiveBatch between a socket and a sink: nothing shown twice, nothing written where nobody
// pointed.
#include "transport/udp/receive_batch.h"

#include <gtest/gtest.h>

#include <functional>
#include <span>

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
  SocketAddress to, from;
  FileDescriptor receiver, sender;
  UdpCounters counters;
  HostMemory memory;
  RecordingSink sink;
};

TEST(ReceiveBatch, PlacesWhatFollowsTheHeaderAndNothingElse) {
  Net net;
  ReceiveBatch batch(1472, false);
  Bytes user(1000, std::byte{0xee});
  net.sink.answer = [&](Datagram& d) {
    d.destination = user.data() + 100;
    d.header_bytes = 64;
  };
  net.send(64 + 300, 7);
  EXPECT_EQ(batch.read(net.receiver.get(), 16, 16, net.counters).taken, 1u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), 1u);
  Bytes expected(1000, std::byte{0xee});
  std::fill_n(expected.begin() + 100, 300, std::byte{7});
  EXPECT_EQ(user, expected);
  EXPECT_EQ(net.sink.arrivals, 1u);
}

TEST(ReceiveBatch, NowhereAndAHeaderPastTheEndWriteNothing) {
  Net net;
  ReceiveBatch batch(1472, false);
  Bytes user(2000, std::byte{0xee});
  net.sink.answer = [&](Datagram& d) {
    if (net.sink.shown.size() == 1) return;  // null: nowhere
    d.destination = user.data();
    d.header_bytes = net.sink.shown.size() == 2 ? 100 : 4000;
  };
  for (int i = 0; i < 3; ++i) net.send(100, 7);
  EXPECT_EQ(batch.read(net.receiver.get(), 16, 16, net.counters).taken, 3u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), 3u);
  EXPECT_EQ(user, Bytes(2000, std::byte{0xee}));
}

TEST(ReceiveBatch, WhatIsLongerThanASlotIsDroppedAndCounted) {
  Net net;
  ReceiveBatch batch(1472, false);
  net.send(1472, 1);
  net.send(1473, 2);
  net.send(10, 3);
  EXPECT_EQ(batch.read(net.receiver.get(), 16, 16, net.counters).taken, 3u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), 2u);
  ASSERT_EQ(net.sink.shown.size(), 2u);
  EXPECT_EQ(net.sink.shown[0].size(), 1472u);
  EXPECT_EQ(net.sink.shown[1], Bytes(10, std::byte{3}));
  EXPECT_EQ(net.counters.truncated, 1u);
  EXPECT_EQ(net.counters.received, 2u);
}

TEST(ReceiveBatch, AFullArenaLeavesTheRestInTheSocket) {
  Net net;
  ReceiveBatch batch(65507, false);
  const size_t slots = batch.room();
  ASSERT_GE(slots, 8u);
  ASSERT_LE(slots, 64u);
  const size_t count = slots + 3;
  for (size_t i = 0; i < count; ++i) net.send(20, static_cast<uint8_t>(i));
  const auto first = batch.read(net.receiver.get(), 1000, 1000, net.counters);
  EXPECT_EQ(first.taken, slots);
  EXPECT_FALSE(first.drained);
  EXPECT_EQ(batch.read(net.receiver.get(), 1000, 1000, net.counters).taken, 0u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), slots);
  const auto second = batch.read(net.receiver.get(), 1000, 1000, net.counters);
  EXPECT_EQ(second.taken, 3u);
  EXPECT_TRUE(second.drained);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), 3u);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(net.sink.shown[i], Bytes(20, static_cast<std::byte>(i)));
  }
}

TEST(ReceiveBatch, NothingToDeliverCallsNobody) {
  Net net;
  ReceiveBatch batch(1472, false);
  const auto read = batch.read(net.receiver.get(), 16, 16, net.counters);
  EXPECT_EQ(read.taken, 0u);
  EXPECT_TRUE(read.drained);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), 0u);
  EXPECT_EQ(net.sink.batches, 0u);
  EXPECT_EQ(net.counters.receive_errors, 0u);
}

TEST(ReceiveBatch, AnIcmpErrorHidesNoDatagram) {
  Net net;
  net.send(10, 7);
  SocketAddress gone_name;
  testing::udp_socket(&gone_name).reset();
  // Connected to a port that nobody has, what it sends comes back as an error on the next call.
  ASSERT_EQ(::connect(net.receiver.get(), gone_name.get(), gone_name.size()), 0);
  ASSERT_EQ(::send(net.receiver.get(), "x", 1, 0), 1);
  ReceiveBatch batch(1472, false);
  const auto read = batch.read(net.receiver.get(), 16, 16, net.counters);
  EXPECT_EQ(net.counters.receive_errors, 1u);
  EXPECT_EQ(read.taken, 1u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), 1u);
  EXPECT_EQ(net.sink.shown[0], Bytes(10, std::byte{7}));
}

// Trains. Whether the kernel hands one over whole depends on the way it came: on loopback it does.

class Trains : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::kernel_sends_trains(net.sender.get()) ||
        !testing::receive_trains(net.receiver.get())) {
      GTEST_SKIP() << "this kernel has no UDP_SEGMENT or no UDP_GRO";
    }
  }
  // One message of `bytes`, to be cut every `cut`; byte i is i modulo 251.
  void send_train(size_t bytes, int cut) {
    ASSERT_TRUE(testing::set_udp_option(net.sender.get(), UDP_SEGMENT, cut));
    testing::send_to(net.sender.get(), numbered(bytes), net.to);
    ASSERT_TRUE(testing::set_udp_option(net.sender.get(), UDP_SEGMENT, 0));
  }
  static Bytes numbered(size_t bytes) {
    Bytes out(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i % 251);
    return out;
  }
  void expect_train(std::span<const Bytes> shown, size_t bytes, size_t cut) {
    Bytes whole;
    for (const Bytes& each : shown) whole.insert(whole.end(), each.begin(), each.end());
    EXPECT_EQ(whole, numbered(bytes));
    ASSERT_EQ(shown.size(), (bytes + cut - 1) / cut);
    for (size_t i = 0; i + 1 < shown.size(); ++i) EXPECT_EQ(shown[i].size(), cut);
  }
  Net net;
};

TEST_F(Trains, AreCutAsTheyWereSent) {
  ReceiveBatch batch(1472, true);
  send_train(44 * 1472, 1472);
  send_train(3 * 1472 + 100, 1472);
  net.send(64, 9);
  EXPECT_EQ(batch.read(net.receiver.get(), 100, 16, net.counters).taken, 3u);
  EXPECT_EQ(net.counters.received_trains, 2u) << "no train came whole: this test proves nothing";
  EXPECT_EQ(net.counters.received, 49u);
  EXPECT_EQ(batch.waiting(), 49u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), 49u);
  const std::span<const Bytes> shown(net.sink.shown);
  expect_train(shown.first(44), 44 * 1472, 1472);
  expect_train(shown.subspan(44, 4), 3 * 1472 + 100, 1472);
  EXPECT_EQ(shown[48], Bytes(64, std::byte{9}));
  EXPECT_EQ(net.sink.arrivals, 49u);
}

TEST_F(Trains, LieOnWholeLines) {
  ReceiveBatch batch(1472, true);
  net.sink.answer = [](Datagram& d) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(d.bytes) % 64, 0u) << "the copy out of here is slow";
  };
  for (int i = 0; i < 3; ++i) send_train(10 * 1472, 1472);
  EXPECT_EQ(batch.read(net.receiver.get(), 100, 16, net.counters).taken, 3u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), 30u);
}

TEST_F(Trains, AreTakenInBitesOfAnySize) {
  ReceiveBatch batch(1472, true);
  send_train(20 * 200 + 10, 200);
  EXPECT_EQ(batch.read(net.receiver.get(), 1, 16, net.counters).taken, 1u);
  size_t left = 21;
  for (size_t bite : {1u, 5u, 0u, 3u, 12u}) {
    EXPECT_EQ(batch.deliver(net.sink, net.memory, bite), bite);
    EXPECT_EQ(batch.waiting(), left -= bite);
  }
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 0), 0u);
  expect_train(net.sink.shown, 20 * 200 + 10, 200);
  const size_t room = batch.room();
  EXPECT_EQ(batch.read(net.receiver.get(), 1, 16, net.counters).taken, 0u);
  EXPECT_EQ(batch.room(), room);
}

TEST_F(Trains, OfTinyOrTooLongDatagramsDoNoHarm) {
  ReceiveBatch batch(1000, true);
  send_train(64, 1);
  send_train(5 * 1001, 1001);  // each longer than any of ours
  net.send(1001, 1);
  net.send(0, 1);
  net.send(1000, 2);
  EXPECT_EQ(batch.read(net.receiver.get(), 1000, 16, net.counters).taken, 5u);
  EXPECT_EQ(net.counters.truncated, 6u);
  EXPECT_EQ(batch.deliver(net.sink, net.memory, 1000), 66u);
  expect_train(std::span<const Bytes>(net.sink.shown).first(64), 64, 1);
  EXPECT_EQ(net.sink.shown[64], Bytes());
  EXPECT_EQ(net.sink.shown[65], Bytes(1000, std::byte{2}));
}

TEST_F(Trains, AreReadNoFurtherThanWanted) {
  ReceiveBatch batch(1472, true);
  for (int i = 0; i < 4; ++i) send_train(10 * 1472, 1472);
  EXPECT_EQ(batch.read(net.receiver.get(), 1, 16, net.counters).taken, 1u);
  EXPECT_EQ(batch.usual_train(), 10u);
  EXPECT_EQ(batch.read(net.receiver.get(), 15, 16, net.counters).taken, 2u);
  EXPECT_EQ(batch.waiting(), 30u);
}

}  // namespace
}  // namespace weft::udp
