// SPDX-License-Identifier: Apache-2.0
// What SendBatch does with what kernels do: take, refuse for now, refuse for good, and pass ICMP's
// news on.
#include "transport/udp/send_batch.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/udp/sockets.h"

namespace weft::udp {
namespace {

using testing::Bytes;

// Datagrams with content that tells them apart, and where they live.
class Load {
 public:
  Outgoing add(uint32_t header_bytes, uint32_t payload_bytes) {
    const auto fill = static_cast<std::byte>(1 + parts_.size());
    const Bytes& header = *parts_.emplace_back(std::make_unique<Bytes>(header_bytes, fill));
    const Bytes& payload = *parts_.emplace_back(std::make_unique<Bytes>(payload_bytes, ~fill));
    Bytes whole = header;
    whole.insert(whole.end(), payload.begin(), payload.end());
    expected.push_back(whole);
    return {header.data(), header_bytes, payload.data(), payload_bytes};
  }
  std::vector<Bytes> expected;

 private:
  std::vector<std::unique_ptr<Bytes>> parts_;
};

struct Pair {
  Pair() : receiver(testing::udp_socket(&to)), sender(testing::udp_socket(&from)) {}
  SocketAddress to, from;
  FileDescriptor receiver, sender;
  UdpCounters counters;
};

TEST(SendBatch, SendsHeaderAndPayloadAsOneDatagram) {
  Pair net;
  Load load;
  SendBatch batch(false);
  for (uint32_t payload : {0u, 1u, 100u, 1408u})
    ASSERT_TRUE(batch.add(load.add(64, payload), &net.to));
  const auto outcome = batch.flush(net.sender.get(), net.counters);
  EXPECT_EQ(outcome.datagrams, 4u);
  EXPECT_FALSE(outcome.no_room);
  EXPECT_EQ(net.counters.send_calls, 1u);
  EXPECT_EQ(testing::drain(net.receiver.get()), load.expected);
  EXPECT_TRUE(batch.empty());
}

TEST(SendBatch, EqualSizesLeaveAsATrainAndArriveOneByOne) {
  Pair net;
  if (!testing::kernel_sends_trains(net.sender.get()))
    GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
  Load load;
  SendBatch batch(true);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(batch.add(load.add(64, 1408), &net.to));
  ASSERT_TRUE(batch.add(load.add(64, 100), &net.to));  // shorter: the train's last
  ASSERT_TRUE(batch.add(load.add(64, 100), &net.to));
  ASSERT_TRUE(batch.add(load.add(64, 1408), &net.to));  // longer: on its own
  EXPECT_EQ(batch.flush(net.sender.get(), net.counters).datagrams, 13u);
  EXPECT_EQ(net.counters.sent, 13u);
  EXPECT_EQ(net.counters.trains, 1u);
  EXPECT_EQ(testing::drain(net.receiver.get()), load.expected);
}

TEST(SendBatch, TrainsEndWhereTheKernelsLimitsAre) {
  Pair net;
  if (!testing::kernel_sends_trains(net.sender.get()))
    GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
  Load load;
  SendBatch many(true);
  for (int i = 0; i < 70; ++i) ASSERT_TRUE(many.add(load.add(8, 8), &net.to));  // 64 and 6
  EXPECT_EQ(many.flush(net.sender.get(), net.counters).datagrams, 70u);
  EXPECT_EQ(net.counters.trains, 2u);
  EXPECT_EQ(testing::drain(net.receiver.get()), load.expected);

  Load large;
  SendBatch few(true);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(few.add(large.add(64, 30000), &net.to));  // 2 and 2
  EXPECT_EQ(few.flush(net.sender.get(), net.counters).datagrams, 4u);
  EXPECT_EQ(net.counters.trains, 4u);
  EXPECT_EQ(net.counters.too_big, 0u);
  EXPECT_EQ(testing::drain(net.receiver.get()), large.expected);
}

TEST(SendBatch, OtherDestinationsAreOtherTrains) {
  Pair net;
  Pair other;
  Load here, there;
  SendBatch batch(true);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(batch.add(here.add(64, 256), &net.to));
    ASSERT_TRUE(batch.add(there.add(64, 256), &other.to));
  }
  EXPECT_EQ(batch.flush(net.sender.get(), net.counters).datagrams, 6u);
  EXPECT_EQ(net.counters.trains, 0u);
  EXPECT_EQ(testing::drain(net.receiver.get()), here.expected);
  EXPECT_EQ(testing::drain(other.receiver.get()), there.expected);
}

TEST(SendBatch, GivesTrainsUpWhereTheyAreRefused) {
  Pair net;
  // Without checksums the kernel refuses trains, as it does on a device that cannot compute them.
  const int one = 1;
  ASSERT_EQ(::setsockopt(net.sender.get(), SOL_SOCKET, SO_NO_CHECK, &one, sizeof one), 0);
  Load load;
  SendBatch batch(true);
  std::vector<Outgoing> posts;
  for (int i = 0; i < 5; ++i) posts.push_back(load.add(64, 512));
  size_t done = 0;
  for (int round = 0; round < 3 && done < posts.size(); ++round) {
    for (size_t i = done; i < posts.size(); ++i) ASSERT_TRUE(batch.add(posts[i], &net.to));
    const auto outcome = batch.flush(net.sender.get(), net.counters);
    EXPECT_FALSE(outcome.no_room);
    done += outcome.datagrams;
  }
  EXPECT_EQ(done, posts.size());
  EXPECT_EQ(net.counters.trains, 0u);
  EXPECT_EQ(net.counters.send_errors, 0u);
  EXPECT_EQ(testing::drain(net.receiver.get()), load.expected);
}

TEST(SendBatch, AFullSocketTakesAPrefix) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  FileDescriptor sender(ends[0]), receiver(ends[1]);
  Load load;
  SendBatch batch(false);
  UdpCounters counters;
  std::vector<Outgoing> posts;
  for (int i = 0; i < 64; ++i) posts.push_back(load.add(8, 32000));
  for (const Outgoing& p : posts) ASSERT_TRUE(batch.add(p, nullptr));
  const auto outcome = batch.flush(sender.get(), counters);
  EXPECT_TRUE(outcome.no_room);
  EXPECT_EQ(counters.refused, 1u);
  ASSERT_GT(outcome.datagrams, 0u);
  ASSERT_LT(outcome.datagrams, posts.size());
  auto got = testing::drain(receiver.get());
  EXPECT_EQ(got.size(), outcome.datagrams);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), load.expected.begin()));
  // And what was not taken goes when there is room.
  ASSERT_TRUE(batch.add(posts[outcome.datagrams], nullptr));
  EXPECT_EQ(batch.flush(sender.get(), counters).datagrams, 1u);
}

TEST(SendBatch, WhatIsTooBigIsLostAndTheRestGoesOn) {
  Pair net;
  Load load;
  SendBatch batch(false);
  ASSERT_TRUE(batch.add(load.add(64, 100), &net.to));
  ASSERT_TRUE(batch.add(load.add(64, 65500), &net.to));
  ASSERT_TRUE(batch.add(load.add(64, 200), &net.to));
  const auto outcome = batch.flush(net.sender.get(), net.counters);
  EXPECT_EQ(outcome.datagrams, 3u);
  EXPECT_FALSE(outcome.no_room);
  EXPECT_EQ(net.counters.too_big, 1u);
  EXPECT_EQ(net.counters.sent, 2u);
  load.expected.erase(load.expected.begin() + 1);
  EXPECT_EQ(testing::drain(net.receiver.get()), load.expected);
}

TEST(SendBatch, IcmpErrorsStopNothing) {
  Pair net;
  ASSERT_EQ(::connect(net.sender.get(), net.to.get(), net.to.size()), 0);
  net.receiver.reset();  // from now on each datagram is answered by "port unreachable"
  Load load;
  SendBatch batch(false);
  // The second flush begins with the news about what the first one sent last.
  for (uint64_t flushes = 1; flushes <= 2; ++flushes) {
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(batch.add(load.add(64, 100), nullptr));
    const auto outcome = batch.flush(net.sender.get(), net.counters);
    EXPECT_EQ(outcome.datagrams, 8u);
    EXPECT_FALSE(outcome.no_room);
    EXPECT_EQ(net.counters.sent, 8 * flushes);
    EXPECT_EQ(net.counters.send_errors, 0u);
  }
  EXPECT_GT(net.counters.send_calls, 4u) << "no error came: this test proves nothing";
}

TEST(SendBatch, ADeadSocketLosesEverythingAndEnds) {
  Load load;
  SendBatch batch(true);
  UdpCounters counters;
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(batch.add(load.add(64, static_cast<uint32_t>(100 + i)), nullptr));
  const auto outcome = batch.flush(-1, counters);
  EXPECT_EQ(outcome.datagrams, 8u);
  EXPECT_EQ(counters.send_errors, 8u);
}

TEST(SendBatch, SaysWhenItIsFull) {
  Pair net;
  Load load;
  SendBatch batch(false);
  const Outgoing one = load.add(4, 4);
  size_t added = 0;
  while (added < 10000 && batch.add(one, &net.to)) ++added;
  EXPECT_GT(added, 16u);
  EXPECT_LT(added, 10000u);
  EXPECT_EQ(batch.flush(net.sender.get(), net.counters).datagrams, added);
  EXPECT_TRUE(batch.add(one, &net.to));
}

}  // namespace
}  // namespace weft::udp
