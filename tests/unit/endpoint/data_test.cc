// SPDX-License-Identifier: Apache-2.0
// Messages between two endpoints of one process over UDP: every size whole, flows apart, memory
// taken away.
#include <thread>

#include "tests/unit/endpoint/support.h"

namespace weft::test {
namespace {

class EndpointData : public ::testing::TestWithParam<ProgressMode> {
 protected:
  Knobs knobs() const {
    Knobs k;
    k.progress = GetParam();
    return k;
  }
};

TEST_P(EndpointData, MessagesOfManySizesArriveWhole) {
  auto a = open_endpoint(knobs());
  auto b = open_endpoint(knobs());
  const Pair flow = connect(*a, *b);
  ASSERT_TRUE(flow.send && flow.receive);
  for (size_t bytes : {0u, 1u, 7u, 128u, 129u, 1408u, 4096u, 32768u, 32769u, 100000u, 1u << 20,
                       (1u << 20) + 77u, 16u << 20}) {
    ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, flow, bytes));
    if (HasFailure()) FAIL() << "at " << bytes << " bytes";
  }
  a->close(flow.send);
  b->close(flow.receive);
}

TEST_P(EndpointData, BothDirectionsAndManyFlowsShareOneConnection) {
  auto a = open_endpoint(knobs());
  auto b = open_endpoint(knobs());
  std::vector<Pair> forth, back;
  for (int i = 0; i < 8; ++i) {
    forth.push_back(connect(*a, *b));
    back.push_back(connect(*b, *a));
  }
  EXPECT_EQ(a->statistics().connections, 1u);
  EXPECT_EQ(b->statistics().connections, 1u);
  for (int i = 0; i < 8; ++i) {
    ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, forth[i], 50000));
    ASSERT_NO_FATAL_FAILURE(transfer(*b, *a, back[i], 50001));
  }
  const Pair other = connect(*a, *b, 1, 1, 5);
  EXPECT_EQ(a->statistics().connections, 2u) << "another traffic class is another connection";
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, other, 1000));
}

TEST_P(EndpointData, TheReceiverMayStopCallingAfterItsLastReceive) {
  auto a = open_endpoint(knobs());
  auto b = open_endpoint(knobs());
  const Pair flow = connect(*a, *b);
  auto source = pattern(1u << 20, 3);
  std::vector<std::byte> sink(source.size());
  auto from = a->register_memory(flow.send, {source.data(), source.size()});
  auto to = b->register_memory(flow.receive, {sink.data(), sink.size()});
  Request* in = post_receive(*b, flow.receive, sink.data(), sink.size(), *to);
  std::thread receiver([&] { EXPECT_TRUE(wait(*b, in).ok()); });
  Request* out = post_send(*a, flow.send, source.data(), source.size(), *from);
  receiver.join();  // nobody calls into b any more
  const Status sent = wait(*a, out);
  EXPECT_TRUE(sent.ok()) << sent.words();
  EXPECT_TRUE(sink == source);
}

TEST_P(EndpointData, NobodyNeedsToCallTheReceiverAtAll) {
  auto a = open_endpoint(knobs());
  auto b = open_endpoint(knobs());
  const Pair flow = connect(*a, *b);
  auto source = pattern(3u << 20, 4);
  std::vector<std::byte> sink(source.size());
  auto from = a->register_memory(flow.send, {source.data(), source.size()});
  auto to = b->register_memory(flow.receive, {sink.data(), sink.size()});
  Request* in = post_receive(*b, flow.receive, sink.data(), sink.size(), *to);
  Request* out = post_send(*a, flow.send, source.data(), source.size(), *from);
  EXPECT_TRUE(wait(*a, out).ok()) << "b's thread is the backstop";
  bool done = false;
  EXPECT_TRUE(poll_until([&] { return b->test(in, &done, nullptr).ok() && done; }));
  EXPECT_TRUE(sink == source);
}

TEST_P(EndpointData, DeregisteringMemoryInUseFailsItsFlowAtOnceAndNobodyElse) {
  auto a = open_endpoint(knobs());
  auto b = open_endpoint(knobs());
  const Pair flow = connect(*a, *b);
  const Pair other = connect(*a, *b);
  std::vector<std::byte> sink(1u << 20);
  auto to = b->register_memory(flow.receive, {sink.data(), sink.size()});
  Request* in = post_receive(*b, flow.receive, sink.data(), sink.size(), *to);
  b->deregister(*to);
  bool done = false;
  const Status status = b->test(in, &done, nullptr);
  EXPECT_TRUE(done) << "without a word from the peer";
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.words().find("deregistered"), std::string::npos) << status.words();
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, other, 100000));
  b->close(flow.receive);
  Request* out = nullptr;
  EXPECT_TRUE(poll_until([&] {
    return a->send(flow.send, sink.data(), 0, 0, nullptr, &out) == Answer::kFailed;
  })) << "the sender hears of it";
  EXPECT_FALSE(a->failure_of(*flow.send).ok());
  a->close(flow.send);
}

TEST_P(EndpointData, ClosingWithRequestsOutstandingIsSeenByThePeerOnly) {
  auto a = open_endpoint(knobs());
  auto b = open_endpoint(knobs());
  const Pair flow = connect(*a, *b);
  const Pair other = connect(*a, *b);
  std::vector<std::byte> source(1u << 20), sink(1u << 20);
  auto from = a->register_memory(flow.send, {source.data(), source.size()});
  auto to = b->register_memory(flow.receive, {sink.data(), sink.size()});
  Request* in = post_receive(*b, flow.receive, sink.data(), sink.size(), *to);
  post_receive(*b, flow.receive, sink.data(), sink.size(), *to);
  ASSERT_TRUE(post_send(*a, flow.send, source.data(), source.size(), *from));
  a->close(flow.send);
  const Status status = wait(*b, in);  // may have arrived whole just before
  if (!status.ok()) {
    EXPECT_EQ(status.code(), Code::kRemote);
  }
  EXPECT_TRUE(poll_until([&] {
    Request* r = nullptr;
    const ReceiveBuffer empty{};
    const Answer answer = b->receive(flow.receive, std::span(&empty, 1), &r);
    if (r) wait(*b, r).ok();
    return answer == Answer::kFailed;
  }));
  b->close(flow.receive);
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, other, 100000));
}

INSTANTIATE_TEST_SUITE_P(All, EndpointData,
                         ::testing::Values(ProgressMode::kCaller, ProgressMode::kThread),
                         [](const auto& p) {
                           return p.param == ProgressMode::kCaller ? "Caller" : "Thread";
                         });

TEST(Endpoint, StatisticsAddUpWhatPathsCarried) {
  auto a = open_endpoint();
  auto b = open_endpoint();
  const Pair flow = connect(*a, *b);
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, flow, 8u << 20));
  for (const bool over : {false, true}) {
    if (over) a->finish_context(1);
    const EndpointStatistics s = a->statistics();
    uint64_t bytes = 0, paths = 0;
    for (const PathCounters& path : s.paths) {
      bytes += path.bytes;
      paths += path.bytes > 0;
    }
    EXPECT_GE(bytes, 8u << 20);
    EXPECT_EQ(paths, 8u) << "every path carries some of 8 MiB";
    EXPECT_EQ(s.connections, over ? 0u : 1u);
  }
}

}  // namespace
}  // namespace weft::test
