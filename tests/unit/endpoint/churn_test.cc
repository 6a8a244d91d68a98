// SPDX-License-Identifier: Apache-2.0
// Flows, contexts and endpoints come and go by the thousand and leave nothing behind.
#include <thread>

#include "tests/unit/endpoint/support.h"
#include "transport/system/clock.h"

namespace weft::test {
namespace {

TEST(Churn, AThousandFlowsOfOneConnectionLeaveNoDescriptor) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  const Pair first = connect(*a, *b);
  const int before = open_descriptors();
  for (int i = 0; i < 1000; ++i) {
    const Pair flow = connect(*a, *b);
    ASSERT_TRUE(flow.send && flow.receive) << "cycle " << i;
    if (i % 50 == 0) {
      ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, flow, 1000));
    }
    if (i % 2)
      a->close(flow.send), b->close(flow.receive);
    else
      b->close(flow.receive), a->close(flow.send);
  }
  EXPECT_EQ(open_descriptors(), before);
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, first, 100000));
}

TEST(Churn, AThousandConnectionsLeaveNoDescriptor) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  int before = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Pair flow = connect(*a, *b, i, i);
    ASSERT_TRUE(flow.send && flow.receive) << "cycle " << i;
    if (i % 50 == 0) {
      ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, flow, 1000));
    }
    if (i % 3 == 0) a->close(flow.send);
    (i % 2 ? a : b)->finish_context(i);
    (i % 2 ? b : a)->finish_context(i);
    if (i == 10) before = open_descriptors();
  }
  EXPECT_TRUE(poll_until([&] { return open_descriptors() <= before; }));
  EXPECT_EQ(a->statistics().connections, 0u);
  EXPECT_EQ(b->statistics().connections, 0u);
}

// Its goodbye lies in the stream, which nobody else reads while this end finishes: the wait for its
// confirmation took its whole 200 ms.
TEST(Churn, AnEndThatHasLeftIsNotWaitedFor) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  int slow = 0;
  for (uint64_t i = 0; i < 30; ++i) {
    const Pair flow = connect(*a, *b, i, i);
    ASSERT_TRUE(flow.send && flow.receive) << "cycle " << i;
    a->close(flow.send);
    a->finish_context(i);
    const Time before = monotonic_now();
    b->finish_context(i);
    slow += monotonic_now() - before > milliseconds(150);
  }
  EXPECT_LE(slow, 3);
}

TEST(Churn, HalfOpenAttemptsEndWithTheirContext) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  const int before = open_descriptors();
  for (uint64_t i = 0; i < 50; ++i) {
    Handle handle;
    Listener* listener = *b->listen(i, &handle);
    Connector* connector = *a->start_connect(i, 0, handle);
    SendFlow* send = nullptr;
    for (uint64_t polls = 0; polls < i; ++polls) ASSERT_TRUE(a->connect(connector, &send).ok());
    a->finish_context(i);
    ReceiveFlow* receive = nullptr;
    ASSERT_TRUE(b->accept(listener, &receive).ok());
    b->finish_context(i);
  }
  EXPECT_TRUE(poll_until([&] { return open_descriptors() <= before; }));
  EXPECT_EQ(a->statistics().connections, 0u);
}

TEST(Churn, TheSameContextMayBeginAgain) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  for (int i = 0; i < 50; ++i) {
    const Pair flow = connect(*a, *b);
    const Pair back = connect(*b, *a);
    ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, flow, 1000));
    ASSERT_NO_FATAL_FAILURE(transfer(*b, *a, back, 1000));
    // Both orders; the other end has not heard yet when it begins anew.
    (i % 2 ? a : b)->finish_context(1);
    (i % 2 ? b : a)->finish_context(1);
  }
}

TEST(Churn, AnEndpointThatGoesAwayTellsItsPeerAtOnce) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  const Pair flow = connect(*a, *b);
  std::vector<std::byte> sink(1000);
  auto to = b->register_memory(flow.receive, {sink.data(), sink.size()});
  Request* in = post_receive(*b, flow.receive, sink.data(), sink.size(), *to);
  a.reset();
  const Status status = wait(*b, in);
  EXPECT_EQ(status.code(), Code::kRemote) << status.words();
  EXPECT_NE(status.words().find("closed"), std::string::npos) << status.words();
}

TEST(Churn, TheLastWordReachesASenderWhoseReceiverLeavesAtOnce) {
  for (int round = 0; round < 20; ++round) {
    auto a = open_endpoint();
    auto b = open_endpoint();
    const Pair flow = connect(*a, *b);
    auto source = pattern(200000, 3);
    std::vector<std::byte> sink(source.size());
    auto from = a->register_memory(flow.send, {source.data(), source.size()});
    auto to = b->register_memory(flow.receive, {sink.data(), sink.size()});
    Request* in = post_receive(*b, flow.receive, sink.data(), sink.size(), *to);
    std::thread receiver([&] {
      EXPECT_TRUE(wait(*b, in).ok());
      b.reset();
    });
    Request* out = post_send(*a, flow.send, source.data(), source.size(), *from);
    const Status sent = wait(*a, out);
    EXPECT_TRUE(sent.ok()) << "round " << round << ": " << sent.words();
    receiver.join();
    EXPECT_TRUE(sink == source);
  }
}

}  // namespace
}  // namespace weft::test
