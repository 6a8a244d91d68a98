// SPDX-License-Identifier: Apache-2.0
// The engine over simulated networks: data arrives, failures reach requests, strangers reach
// nothing.
#include "tests/unit/engine/sim_pair.h"

namespace weft::test {
namespace {

class EngineSim : public ::testing::TestWithParam<sim::Mode> {
 protected:
  static sim::SimConfig lossy() {
    sim::SimConfig config;
    config.mode = GetParam();
    config.faults.loss = 0.05;
    config.faults.control_loss = 0.05;
    config.faults.refuse = 0.05;
    return config;
  }
};

struct Transfer {
  Transfer(SimPair& pair, size_t bytes, uint64_t seed) : source(pattern(bytes, seed)), sink(bytes) {
    EXPECT_TRUE(pair.engine(0).register_memory(pair.member(0), {source.data(), bytes}, &from).ok());
    EXPECT_TRUE(pair.engine(1).register_memory(pair.member(1), {sink.data(), bytes}, &to).ok());
  }
  std::vector<std::byte> source, sink;
  Registration from, to;
};

TEST_P(EngineSim, MessagesOfManySizesArriveWholeThroughLossAndFullQueues) {
  SimPair pair(lossy());
  std::unique_ptr<SendFlow> send;
  std::unique_ptr<ReceiveFlow> receive;
  ASSERT_NO_FATAL_FAILURE(pair.open_flow(&send, &receive));
  for (size_t bytes : {1u, 127u, 128u, 1408u, 1409u, 65536u, 1000003u, 3000000u}) {
    Transfer t(pair, bytes, bytes);
    const ReceiveBuffer part{t.sink.data(), bytes, 3, &t.to};
    Request* in = nullptr;
    Request* out = nullptr;
    ASSERT_EQ(receive->receive(std::span(&part, 1), &in), Answer::kPosted);
    ASSERT_TRUE(pair.run([&] {
      const Answer a = send->send(t.source.data(), bytes, 3, &t.from, &out);
      EXPECT_TRUE(a == Answer::kAgain || a == Answer::kPosted);
      return a == Answer::kPosted;
    })) << bytes;
    ASSERT_TRUE(pair.run([&] { return done(in) && done(out); })) << bytes;
    EXPECT_EQ(in->sizes[0], bytes);
    EXPECT_EQ(t.sink, t.source) << bytes;
    receive->release(*in);
    send->release(*out);
    pair.engine(0).deregister_memory(t.from);
    pair.engine(1).deregister_memory(t.to);
  }
  EXPECT_EQ(pair.network().counters().violations, 0u) << pair.network().first_violation();
  pair.engine(0).close_flow(*send);
  pair.engine(1).close_flow(*receive);
}

TEST_P(EngineSim, EmptyAndGroupedReceivesComplete) {
  SimPair pair(lossy());
  std::unique_ptr<SendFlow> send;
  std::unique_ptr<ReceiveFlow> receive;
  ASSERT_NO_FATAL_FAILURE(pair.open_flow(&send, &receive));
  Transfer t(pair, 4096, 5);
  const std::array parts{ReceiveBuffer{t.sink.data(), 2048, 1, &t.to},
                         ReceiveBuffer{nullptr, 0, 2, nullptr},
                         ReceiveBuffer{t.sink.data() + 2048, 2048, 3, &t.to}};
  Request* in = nullptr;
  ASSERT_EQ(receive->receive(parts, &in), Answer::kPosted);
  struct Send {
    size_t offset, bytes;
    int32_t tag;
  };
  std::array<Request*, 3> out{};
  const std::array<Send, 3> sends{Send{2048, 100, 3}, Send{0, 0, 2}, Send{0, 2048, 1}};
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(pair.run([&] {
      return send->send(t.source.data() + sends[i].offset, sends[i].bytes, sends[i].tag, &t.from,
                        &out[i]) == Answer::kPosted;
    }));
  }
  ASSERT_TRUE(pair.run([&] { return done(in) && done(out[0]) && done(out[1]) && done(out[2]); }));
  EXPECT_EQ(in->sizes[0], 2048u);
  EXPECT_EQ(in->sizes[1], 0u);
  EXPECT_EQ(in->sizes[2], 100u);
  EXPECT_TRUE(std::equal(t.source.begin(), t.source.begin() + 2148, t.sink.begin()));
  pair.engine(0).close_flow(*send);
  pair.engine(1).close_flow(*receive);
}

TEST_P(EngineSim, ASilentPeerFailsEveryRequest) {
  sim::SimConfig config = lossy();
  config.blackholes.push_back({-1, -1, Time{} + microseconds(500)});
  SimPair pair(config);
  std::unique_ptr<SendFlow> send;
  std::unique_ptr<ReceiveFlow> receive;
  ASSERT_NO_FATAL_FAILURE(pair.open_flow(&send, &receive));
  Transfer t(pair, 50u << 20, 6);
  const ReceiveBuffer part{t.sink.data(), t.sink.size(), 0, &t.to};
  Request* in = nullptr;
  Request* second = nullptr;
  Request* out = nullptr;
  ASSERT_EQ(receive->receive(std::span(&part, 1), &in), Answer::kPosted);
  ASSERT_EQ(receive->receive(std::span(&part, 1), &second), Answer::kPosted);
  ASSERT_TRUE(pair.run([&] {
    return send->send(t.source.data(), t.source.size(), 0, &t.from, &out) == Answer::kPosted;
  }));
  ASSERT_TRUE(pair.run([&] { return failed(in) && failed(second) && failed(out); }))
      << failed(in) << failed(second) << failed(out) << " " << done(in) << done(out) << " at "
      << pair.network().now().ns << " ns, deadlines " << pair.engine(0).poll_timeout().ns << " and "
      << pair.engine(1).poll_timeout().ns;
  EXPECT_EQ(out->failure, Failure::kPeerSilent);
  EXPECT_EQ(send->failure(), Failure::kPeerSilent);
  Request* more = nullptr;
  EXPECT_EQ(send->send(t.source.data(), 1, 0, &t.from, &more), Answer::kFailed);
  EXPECT_EQ(receive->receive(std::span(&part, 1), &more), Answer::kFailed);
  pair.engine(0).close_flow(*send);
  pair.engine(1).close_flow(*receive);
}

TEST_P(EngineSim, ClosingWithWorkOutstandingLeavesTheOtherFlowsAlone) {
  SimPair pair(lossy());
  std::unique_ptr<SendFlow> send, other_send;
  std::unique_ptr<ReceiveFlow> receive, other_receive;
  ASSERT_NO_FATAL_FAILURE(pair.open_flow(&send, &receive));
  ASSERT_NO_FATAL_FAILURE(pair.open_flow(&other_send, &other_receive));
  Transfer t(pair, 4u << 20, 6), u(pair, 1u << 20, 7);
  const ReceiveBuffer part{t.sink.data(), t.sink.size(), 0, &t.to};
  const ReceiveBuffer other_part{u.sink.data(), u.sink.size(), 0, &u.to};
  Request *in, *out, *other_in, *other_out;
  ASSERT_EQ(receive->receive(std::span(&part, 1), &in), Answer::kPosted);
  ASSERT_EQ(other_receive->receive(std::span(&other_part, 1), &other_in), Answer::kPosted);
  ASSERT_TRUE(pair.run([&] {
    return send->send(t.source.data(), t.source.size(), 0, &t.from, &out) == Answer::kPosted;
  }));
  ASSERT_TRUE(pair.run([&] {
    return other_send->send(u.source.data(), u.source.size(), 0, &u.from, &other_out) ==
           Answer::kPosted;
  }));
  pair.engine(1).close_flow(*receive);
  receive.reset();
  ASSERT_TRUE(pair.run([&] { return failed(out) && done(other_in) && done(other_out); }));
  EXPECT_EQ(out->failure, Failure::kPeerClosed);
  EXPECT_EQ(u.sink, u.source);
  pair.engine(0).close_flow(*send);
  pair.engine(0).close_flow(*other_send);
  pair.engine(1).close_flow(*other_receive);
}

TEST_P(EngineSim, MemoryThatIsTakenAwayFailsItsFlowAtOnce) {
  SimPair pair(lossy());
  std::unique_ptr<SendFlow> send;
  std::unique_ptr<ReceiveFlow> receive;
  ASSERT_NO_FATAL_FAILURE(pair.open_flow(&send, &receive));
  Transfer t(pair, 1u << 20, 6);
  const ReceiveBuffer part{t.sink.data(), t.sink.size(), 0, &t.to};
  Request* in = nullptr;
  ASSERT_EQ(receive->receive(std::span(&part, 1), &in), Answer::kPosted);
  pair.engine(1).deregister_memory(t.to);  // before the engine has even seen the receive
  EXPECT_TRUE(failed(in));
  EXPECT_EQ(in->failure, Failure::kDeregistered);
  pair.engine(0).close_flow(*send);
  pair.engine(1).close_flow(*receive);
}

TEST_P(EngineSim, WithNothingToDoThereIsNoDeadline) {
  SimPair pair(lossy());
  std::unique_ptr<SendFlow> send;
  std::unique_ptr<ReceiveFlow> receive;
  ASSERT_NO_FATAL_FAILURE(pair.open_flow(&send, &receive));
  const auto idle = [&] {
    return pair.engine(0).poll_timeout() == Time::never() &&
           pair.engine(1).poll_timeout() == Time::never();
  };
  EXPECT_TRUE(pair.run(idle));
  pair.engine(0).close_flow(*send);
  pair.engine(1).close_flow(*receive);
  EXPECT_TRUE(pair.run(idle));
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineSim,
                         ::testing::Values(sim::Mode::kDatagram, sim::Mode::kPlacing),
                         [](const auto& p) {
                           return p.param == sim::Mode::kDatagram ? "Datagram" : "Placing";
                         });

TEST(Engine, AStrangerReachesNoConnection) {
  sim::SimConfig config;
  SimPair pair(config);
  // A right connection with a wrong token, a connection that is not there, and what is no datagram.
  std::array<ControlPost, 3> posts;
  wire::Address right = pair.member(1).own;
  for (size_t i = 0; i < posts.size(); ++i) {
    wire::Address to = right;
    if (i == 0) to.token ^= 1;
    if (i == 1) to.connection += 77;
    posts[i].link = pair.member(0).link;
    wire::ControlWriter writer(posts[i].data);
    writer.add(wire::FlowState{0, wire::FlowRole::kSender, wire::FlowPhase::kReset, 0, 0});
    posts[i].bytes = static_cast<uint16_t>(writer.finish(to, {}));
    if (i == 2) posts[i].data[0] = std::byte{0};
  }
  ASSERT_EQ(pair.network().host(0).post_control(pair.network().now(), posts), posts.size());
  pair.run([] { return false; }, milliseconds(10));
  EXPECT_EQ(pair.engine(1).counters().strangers, 2u);
  EXPECT_EQ(pair.engine(1).counters().malformed, 1u);
}

TEST(Engine, ADetachedNameIsNotTheNextOnesName) {
  SimPair pair(sim::SimConfig{});
  const wire::Address before = pair.member(0).own;
  pair.engine(0).detach(pair.member(0));
  Member* next = pair.engine(0).reserve(before.token);
  ASSERT_TRUE(next);
  EXPECT_NE(next->own.connection, before.connection);
}

TEST(Flow, CallsThatMakeNoSenseChangeNothing) {
  SimPair pair(sim::SimConfig{});
  std::unique_ptr<SendFlow> send;
  std::unique_ptr<ReceiveFlow> receive;
  ASSERT_NO_FATAL_FAILURE(pair.open_flow(&send, &receive));
  Transfer t(pair, 1000, 1);
  Request* r = nullptr;
  EXPECT_EQ(send->send(t.source.data(), 10, 0, nullptr, &r), Answer::kInvalid);
  EXPECT_EQ(send->send(t.source.data() + 1, 1000, 0, &t.from, &r), Answer::kInvalid);
  EXPECT_EQ(send->send(t.source.data(), 10, 0, &t.to, &r), Answer::kInvalid) << "the other end's";
  const ReceiveBuffer outside{t.sink.data() + 1, 1000, 0, &t.to};
  EXPECT_EQ(receive->receive(std::span(&outside, 1), &r), Answer::kInvalid);
  EXPECT_EQ(receive->receive({}, &r), Answer::kInvalid);
  EXPECT_EQ(r, nullptr);
  const ReceiveBuffer small{t.sink.data(), 10, 0, &t.to};
  ASSERT_EQ(receive->receive(std::span(&small, 1), &r), Answer::kPosted);
  Request* out = nullptr;
  EXPECT_TRUE(pair.run([&] {
    return send->send(t.source.data(), 11, 0, &t.from, &out) == Answer::kInvalid;
  })) << "a send larger than its receive is an error";
  EXPECT_TRUE(pair.run(
      [&] { return send->send(t.source.data(), 10, 0, &t.from, &out) == Answer::kPosted; }));
  EXPECT_TRUE(pair.run([&] { return done(r) && done(out); }));
  pair.engine(0).close_flow(*send);
  pair.engine(1).close_flow(*receive);
}

TEST(Flow, FullIsAnAnswerAndFreedRequestsMakeRoom) {
  SimPair pair(sim::SimConfig{});
  std::unique_ptr<SendFlow> send;
  std::unique_ptr<ReceiveFlow> receive;
  ASSERT_NO_FATAL_FAILURE(pair.open_flow(&send, &receive));
  const ReceiveBuffer empty{};
  std::vector<Request*> in;
  for (;;) {
    Request* r = nullptr;
    const Answer a = receive->receive(std::span(&empty, 1), &r);
    if (a == Answer::kAgain) break;
    ASSERT_EQ(a, Answer::kPosted);
    in.push_back(r);
    ASSERT_LE(in.size(), kMaxReceiveRequests);
  }
  EXPECT_EQ(in.size(), kMaxReceiveRequests);
  // Never tested, although complete: the ring and the pool still hold.
  std::vector<Request*> out;
  ASSERT_TRUE(pair.run([&] {
    Request* r = nullptr;
    if (send->send(nullptr, 0, 0, nullptr, &r) == Answer::kPosted) out.push_back(r);
    return out.size() == in.size();
  }));
  ASSERT_TRUE(pair.run([&] { return done(in.back()) && done(out.back()); }));
  for (Request* r : in) receive->release(*r);
  Request* r = nullptr;
  EXPECT_EQ(receive->receive(std::span(&empty, 1), &r), Answer::kPosted);
  pair.engine(0).close_flow(*send);
  pair.engine(1).close_flow(*receive);
}

}  // namespace
}  // namespace weft::test
