// SPDX-License-Identifier: Apache-2.0
// What is sent arrives: once, whole, in the right place, and is reported when it should be.
#include <gtest/gtest.h>

#include "tests/unit/connection/pair.h"

namespace weft::test {
namespace {

using Kind = Event::Kind;

class Delivery : public testing::TestWithParam<bool> {
 protected:
  Offloads offloads() const { return {.places = GetParam(), .ordered_path = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Fabrics, Delivery, testing::Bool(),
                         [](const auto& i) { return i.param ? "placing" : "datagram"; });

TEST_P(Delivery, MessagesOfAllSizesArriveWhole) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  for (size_t bytes : {0u, 1u, 127u, 128u, 1023u, 1024u, 1025u, 5000u, 100000u, 1000000u}) {
    auto* from = pair.buffer(0, bytes);
    for (size_t i = 0; i < bytes; ++i) from->bytes[i] = static_cast<std::byte>(i * 31 + bytes);
    auto* to = pair.buffer(1, bytes + 100);
    const size_t before = pair.count(1, Kind::kReceived);
    ASSERT_TRUE(pair.receive(1, flow, to));
    pair.settle();
    ASSERT_TRUE(pair.send(0, flow, from, bytes)) << bytes;
    ASSERT_TRUE(pair.run([&] {
      return pair.count(1, Kind::kReceived) == before + 1 &&
             pair.count(0, Kind::kSent) == before + 1;
    })) << bytes;
    EXPECT_EQ(pair.events(1, Kind::kReceived).back().sizes[0], bytes);
    EXPECT_TRUE(std::equal(from->bytes.begin(), from->bytes.begin() + bytes, to->bytes.begin()))
        << bytes;
    for (size_t i = bytes; i < to->bytes.size(); ++i) ASSERT_EQ(to->bytes[i], std::byte{0xee});
  }
}

TEST_P(Delivery, NothingIsSentWithoutAGrant) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  pair.settle();
  auto* from = pair.buffer(0, 100);
  EXPECT_FALSE(pair.send(0, flow, from, 100));
  EXPECT_FALSE(pair.end[0]->post_send({flow, 0, 0, from->base(), 100, 0, from->region, 0}));
  pair.settle();
  EXPECT_TRUE(pair.history.empty()) << "an idle connection sends nothing";
}

TEST_P(Delivery, GrantsAndRegionsAreRepeatedUntilTheyAreConfirmed) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  int dropped = 0;
  pair.lose = [&](const Parcel& p) { return p.from == 1 && ++dropped <= 5; };
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 1000)));
  EXPECT_TRUE(pair.run([&] { return pair.count(0, Kind::kGranted) == 1; }));
  EXPECT_GT(dropped, 5);
  const size_t before = pair.history.size();
  pair.now = pair.now + milliseconds(1);
  pair.settle();
  pair.now = pair.now + milliseconds(400);
  pair.settle();
  EXPECT_EQ(pair.history.size(), before) << "once confirmed, there is silence";
}

TEST_P(Delivery, ALostFinalAckIsAskedForAndNothingIsSentAgain) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 3000)));
  pair.settle();
  bool acks_die = true;
  pair.lose = [&](const Parcel& p) { return acks_die && p.from == 1 && p.control; };
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 3000), 3000));
  pair.settle();
  EXPECT_EQ(pair.count(1, Kind::kReceived), 1u);
  EXPECT_EQ(pair.count(0, Kind::kSent), 0u);
  acks_die = false;
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
  EXPECT_EQ(pair.end[0]->segments_retransmitted(), 0u);
}

TEST_P(Delivery, AReceiveOfManySegmentsIsReportedOnlyAfterTheAckThatCoversIt) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 3000)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 3000), 3000));
  pair.turn(0);
  pair.deliver();
  Event event;
  EXPECT_FALSE(pair.end[1]->poll_event(&event)) << "its ack has not left";
  pair.turn(1);
  EXPECT_EQ(pair.count(1, Kind::kReceived), 1u);
  ASSERT_FALSE(pair.wire.empty());
  pair.settle();
  EXPECT_EQ(pair.count(0, Kind::kSent), 1u);
}

TEST_P(Delivery, TheAckOfASmallMessageGoesWithItsAnswer) {
  Pair pair(offloads());
  const FlowId there = pair.open_flow(0);
  const FlowId back = pair.open_flow(1);
  ASSERT_TRUE(pair.receive(1, there, pair.buffer(1, 100)));
  ASSERT_TRUE(pair.receive(0, back, pair.buffer(0, 100)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, there, pair.buffer(0, 100), 100));
  pair.settle();
  EXPECT_EQ(pair.count(1, Kind::kReceived), 1u);
  EXPECT_EQ(pair.count(0, Kind::kSent), 0u) << "nothing was sent for the ack alone";
  ASSERT_TRUE(pair.send(1, back, pair.buffer(1, 100), 100));
  pair.settle();
  EXPECT_EQ(pair.count(0, Kind::kReceived), 1u);
  // Without an answer it does not wait for long, and no time-out asks for it.
  const Time sent = pair.now;
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
  EXPECT_LE(pair.now - sent, microseconds(100));
  EXPECT_EQ(pair.end[0]->segments_retransmitted(), 0u);
}

TEST_P(Delivery, AClosedFlowIsUnconfirmedUntilThePeerSaysThatItKnows) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  pair.settle();
  EXPECT_FALSE(pair.end[0]->ends_unconfirmed());
  bool dead = true;
  pair.lose = [&](const Parcel&) { return dead; };
  pair.end[0]->close_send_flow(flow);
  pair.run([] { return false; }, milliseconds(50));
  EXPECT_TRUE(pair.end[0]->ends_unconfirmed());
  dead = false;
  EXPECT_TRUE(pair.run([&] { return !pair.end[0]->ends_unconfirmed(); }, milliseconds(50)))
      << "it is told again until it is confirmed";
}

TEST_P(Delivery, TheGrantOfAReceiveToSpareWaitsALittleAndOneThatIsNeededDoesNot) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  const auto post = [&] { ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 100))); };
  post();
  post();
  pair.settle();
  EXPECT_EQ(pair.count(0, Kind::kGranted), 2u) << "nothing was to spare";
  pair.run([] { return false; }, milliseconds(1));  // what was due a little later has been said
  const size_t said = pair.history.size();
  post();
  pair.settle();
  EXPECT_EQ(pair.history.size(), said) << "two the sender knows and has not used";
  const Time posted = pair.now;
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kGranted) == 3; }));
  EXPECT_LE(pair.now - posted, microseconds(100));
}

TEST_P(Delivery, AnAckSaysForHowLongItsSenderHadNotPolled) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  const auto exchange = [&](Duration away) {
    const size_t before = pair.count(0, Kind::kSent);
    ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 100)));
    pair.settle();
    ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 100), 100));
    pair.turn(0);
    pair.now = pair.now + away;
    pair.end[1]->handle_poll_gap(away);
    ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == before + 1; }));
  };
  const auto slowest = [&] {
    Duration most{};
    for (const Path& p : pair.end[0]->paths()) {
      if (p.rtt.known()) most = std::max(most, p.rtt.smoothed());
    }
    return most;
  };
  for (int i = 0; i < 40; ++i) exchange(microseconds(50));
  const Duration before = slowest();
  for (int i = 0; i < 40; ++i) exchange(milliseconds(20));
  EXPECT_LE(slowest(), before + microseconds(1))
      << "a peer that was away says nothing about the network";
}

TEST_P(Delivery, GroupedReceivesTakeSendsByTag) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  std::vector<Pair::Buffer*> to;
  std::vector<ReceivePart> parts;
  for (int i = 0; i < 8; ++i) {
    to.push_back(pair.buffer(1, 5000));
    parts.push_back({to.back()->base(), 5000, to.back()->region, i % 3});
  }
  ASSERT_TRUE(pair.end[1]->post_receive(flow, parts, 42));
  pair.settle();
  // Tags 2, 1, 0 in turn: each goes to the first free part with its tag.
  std::vector<std::pair<int, size_t>> sent;
  for (int tag : {2, 2, 1, 1, 1, 0, 0, 0}) {
    const size_t bytes = 1000 + sent.size() * 500;
    auto* from = pair.buffer(0, bytes, static_cast<std::byte>(sent.size() + 1));
    ASSERT_TRUE(pair.send(0, flow, from, bytes, tag)) << sent.size();
    sent.emplace_back(tag, bytes);
  }
  ASSERT_TRUE(pair.run([&] { return pair.count(1, Kind::kReceived) == 1; }));
  const Event e = pair.events(1, Kind::kReceived)[0];
  EXPECT_EQ(e.token, 42u);
  ASSERT_EQ(e.parts, 8);
  std::array<int, 3> next{};
  for (size_t i = 0; i < sent.size(); ++i) {
    const int part = sent[i].first + 3 * next[sent[i].first]++;
    EXPECT_EQ(e.sizes[part], sent[i].second) << i;
    EXPECT_EQ(to[part]->bytes[0], static_cast<std::byte>(i + 1));
  }
}

// Design, invariant 8.
TEST_P(Delivery, NoSegmentBoundaryFallsInsideALine) {
  Pair pair(offloads(), [](ConnectionConfig& c) { c.segment_bytes = c.peer_segment_bytes = 1408; });
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 100000)));
  pair.settle();
  auto* from = pair.buffer(0, 100000);
  ASSERT_TRUE(pair.send(0, flow, from, 99999));
  pair.run([&] { return pair.count(0, Kind::kSent) == 1; });
  for (const Parcel& p : pair.history) {
    if (p.control || p.is_probe() || p.segment.bytes == 0) continue;
    EXPECT_EQ((p.segment.source - from->base()) % 128, 0);
  }
}

TEST_P(Delivery, EverySegmentIsSentOnceWhenNothingIsLost) {
  Pair pair(offloads());
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 1 << 20)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 1 << 20), 1 << 20));
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
  size_t segments = 0;
  for (const Parcel& p : pair.history) segments += !p.control && !p.is_probe();
  EXPECT_EQ(segments, (1u << 20) / 1024);
  size_t used = 0;
  for (const Path& path : pair.end[0]->paths()) used += path.counters.packets > 0;
  EXPECT_EQ(used, 4u) << "all paths share the work";
}

TEST(Datagrams, ADuplicateIsWrittenNowhere) {
  Pair pair;
  const FlowId flow = pair.open_flow(0);
  auto* to = pair.buffer(1, 4096);
  ASSERT_TRUE(pair.receive(1, flow, to));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 4096, std::byte{1}), 4096));
  pair.run([&] { return pair.count(0, Kind::kSent) == 1; });
  for (const Parcel& p : pair.history) {
    if (p.control || p.is_probe()) continue;
    EXPECT_EQ(pair.end[1]->claim(pair.now, p.header), nullptr);
  }
}

// How many segments arrive for each ack when one comes every so often.
double arrivals_for_an_ack(Duration apart) {
  Pair pair({}, [](ConnectionConfig& c) { c.law = "fixed"; });
  const FlowId flow = pair.open_flow(0);
  constexpr size_t kSegments = 4000;
  EXPECT_TRUE(pair.receive(1, flow, pair.buffer(1, kSegments * 1024)));
  pair.settle();
  EXPECT_TRUE(pair.send(0, flow, pair.buffer(0, kSegments * 1024), kSegments * 1024));
  std::deque<Parcel> coming;
  size_t arrived = 0, acks = 0;
  for (size_t i = 0; i < kSegments; ++i) {
    pair.turn(0);
    while (!pair.wire.empty()) {
      coming.push_back(pair.wire.front());
      pair.wire.pop_front();
    }
    if (coming.empty()) break;
    pair.wire.push_back(coming.front());
    coming.pop_front();
    pair.deliver();
    pair.now = pair.now + apart;
    pair.turn(1);
    if (i < kSegments / 2) {
      pair.deliver();
      continue;
    }
    ++arrived;
    acks += pair.wire.size();
    pair.deliver();
  }
  return static_cast<double>(arrived) / static_cast<double>(std::max<size_t>(acks, 1));
}

TEST(Datagrams, AcksAreRareWhereArrivalsAreFastAndTimelyWhereTheyAreSlow) {
  EXPECT_GT(arrivals_for_an_ack(nanoseconds(700)), 100);
  EXPECT_LT(arrivals_for_an_ack(nanoseconds(700)), 150);
  EXPECT_LE(arrivals_for_an_ack(microseconds(10)), 11) << "an ack is held for 100 us at most";
}

TEST(Datagrams, LostSegmentsAreSentAgainOnAnyPath) {
  Pair pair;
  const FlowId flow = pair.open_flow(0);
  auto* to = pair.buffer(1, 300000);
  auto* from = pair.buffer(0, 300000);
  for (size_t i = 0; i < from->bytes.size(); ++i) from->bytes[i] = static_cast<std::byte>(i / 7);
  ASSERT_TRUE(pair.receive(1, flow, to));
  pair.settle();
  uint64_t n = 0;
  pair.lose = [&](const Parcel& p) { return !p.control && ++n % 5 == 0; };
  ASSERT_TRUE(pair.send(0, flow, from, 300000));
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
  EXPECT_EQ(to->bytes, from->bytes);
  EXPECT_GT(pair.end[0]->segments_retransmitted(), 0u);
}

TEST(Datagrams, APathThatSwallowsEverythingIsDeclaredDeadAndComesBack) {
  Pair pair;
  const FlowId flow = pair.open_flow(0);
  bool broken = true;
  pair.lose = [&](const Parcel& p) {
    return broken && p.from == 0 && !p.control && p.segment.path == 2;
  };
  auto exchange = [&] {
    const size_t before = pair.count(0, Kind::kSent);
    ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 100000)));
    pair.settle();
    ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 100000), 100000));
    ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == before + 1; }));
  };
  for (int i = 0; i < 20 && !pair.end[0]->paths()[2].dead; ++i) {
    exchange();
    pair.now = pair.now + milliseconds(1);
  }
  EXPECT_TRUE(pair.end[0]->paths()[2].dead);
  broken = false;
  for (int i = 0; i < 50 && pair.end[0]->paths()[2].dead; ++i) {
    exchange();
    pair.now = pair.now + milliseconds(10);
  }
  EXPECT_FALSE(pair.end[0]->paths()[2].dead);
}

// Who only receives has no data from whose acks it could learn which of its ways lead into holes.
TEST(Datagrams, AReceiverFindsTheWaysThatItsAcksCanTake) {
  Pair pair({}, [](ConnectionConfig& c) { c.paths = 8; });
  const FlowId flow = pair.open_flow(0);
  pair.lose = [](const Parcel& p) {
    const PathIndex path = p.control ? p.packet.path : p.segment.path;
    return p.from == 1 && path % 4 != 3;
  };
  size_t acks = 0, lost = 0;
  for (size_t i = 0; i < 20; ++i) {
    if (i == 10) pair.history.clear();
    ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 100000)));
    auto* from = pair.buffer(0, 100000);
    ASSERT_TRUE(pair.run([&] { return pair.send(0, flow, from, 100000); }));
    ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == i + 1; }));
  }
  for (const Parcel& p : pair.history) {
    if (p.from != 1 || !p.control) continue;
    ++acks;
    lost += pair.lose(p);
  }
  EXPECT_GT(acks, 10u);
  EXPECT_LE(lost, acks / 10);
}

TEST(Datagrams, WhatTheFabricRefusesGoesAgainAndIsNoRetransmission) {
  Pair pair;
  const FlowId flow = pair.open_flow(0);
  ASSERT_TRUE(pair.receive(1, flow, pair.buffer(1, 5000)));
  pair.settle();
  ASSERT_TRUE(pair.send(0, flow, pair.buffer(0, 5000), 5000));
  auto outbox = std::make_unique<Outbox>();
  pair.end[0]->poll_transmit(pair.now, *outbox);
  ASSERT_EQ(outbox->segments, 5u);
  pair.end[0]->handle_refused({outbox->segment.data() + 1, 4});
  pair.end[0]->handle_refused({outbox->segment.data(), 1});
  ASSERT_TRUE(pair.run([&] { return pair.count(0, Kind::kSent) == 1; }));
  EXPECT_EQ(pair.end[0]->segments_retransmitted(), 0u);
  uint64_t bytes = 0;
  for (const Path& p : pair.end[0]->paths()) bytes += p.counters.bytes;
  EXPECT_EQ(bytes, 5000u);
}

}  // namespace
}  // namespace weft::test
