// SPDX-License-Identifier: Apache-2.0
// The ledger by itself: what a late arrival teaches, and what proves nothing.
//
// A test posts copies of one endless message, decides when each arrives, and reports arrivals as a
// receiver does, path by path.
#include "multipath/connection/ledger.h"

#include <gtest/gtest.h>

#include <map>

namespace weft {
namespace {

constexpr uint32_t kSegment = 1024;

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    config_.paths = 2;
    config_.segment_bytes = kSegment;
    config_.law = "fixed";
    ledger_ = std::make_unique<Ledger>(config_, messages_);
  }

  Path& path(size_t i) { return ledger_->paths()[i]; }

  // Of a message that never ends: its window moves on as if all had arrived.
  SendMessage& message() {
    SendMessage* m = messages_.take();
    m->bytes = uint64_t{kSegment} << 20;
    m->segment_bytes = kSegment;
    m->segments = 1u << 20;
    return *m;
  }

  uint64_t post(size_t on, SendMessage& m) {
    bool repair = false;
    const uint32_t segment = m.take(&repair);
    return ledger_->post(path(on), m, segment, repair, now_);
  }

  void report(size_t on, uint64_t number) {
    wire::PathAck ack;
    ack.path = static_cast<uint16_t>(on);
    ack.largest = number;
    ack.words = 1;
    ack.bits[0] = uint64_t{1} << 63;
    ledger_->on_path_ack({now_, ++stamp_, false}, ack);
    ledger_->look_for_losses(now_);
    ledger_->on_deadline(now_, now_);
  }

  // Segment 0 on path 0 is taken for lost, as four others arrive that left after it.
  uint64_t lose_one(SendMessage& m) {
    const uint64_t first = post(0, m);
    const uint64_t second = post(0, m);
    for (int i = 0; i < 3; ++i) post(0, m);
    now_ = now_ + milliseconds(1);
    for (uint64_t later = second; later < second + 4; ++later) report(0, later);
    now_ = now_ + milliseconds(10);
    ledger_->on_deadline(now_, now_);
    return first;
  }

  void settle() {
    while (SendMessage* m = ledger_->touched().front()) m->TouchedHook::unlink();
    while (SendMessage* m = ledger_->queries().front()) m->QueryHook::unlink();
  }

  ConnectionConfig config_;
  SendMessagePool messages_;
  std::unique_ptr<Ledger> ledger_;
  Time now_{1000000};
  uint64_t stamp_ = 0;
};

// With a window that nothing cuts, a queue can outgrow every RTT that was ever sampled at once; if
// only those count that arrive in time, it is never sampled, and all goes twice from then on.
TEST_F(LedgerTest, APathWhoseQueueOutgrowsItsRttIsBelievedOnceItsCopiesArrive) {
  SendMessage& m = message();
  std::multimap<Time, std::pair<size_t, uint64_t>> under_way;
  uint64_t posted = 0;
  const auto run = [&](Duration length, Duration slow) {
    const Time end = now_ + length;
    for (; now_ < end; now_ = now_ + microseconds(200)) {
      while (!under_way.empty() && under_way.begin()->first <= now_) {
        const auto [on, number] = under_way.begin()->second;
        under_way.erase(under_way.begin());
        report(on, number);
      }
      ledger_->on_deadline(now_, now_);
      for (size_t on : {0u, 1u}) {
        if (!path(on).usable() || !m.sendable()) continue;
        const Duration way = on == 0 ? slow : microseconds(300);
        under_way.emplace(now_ + way, std::pair(on, post(on, m)));
        posted += on == 0;
      }
      settle();
    }
  };
  run(milliseconds(50), microseconds(300));
  ASSERT_EQ(ledger_->lost(), 0u);
  run(milliseconds(100), milliseconds(30));
  const uint64_t before = ledger_->lost();
  posted = 0;
  run(milliseconds(400), milliseconds(30));
  EXPECT_GT(posted, 1000u);
  EXPECT_LT(ledger_->lost() - before, posted / 100);
}

// All that goes into the hole is judged by what arrives elsewhere before the path's own time-out:
// then nothing is left that could time out, and it would be used for ever.
TEST_F(LedgerTest, APathIntoAHoleDiesThoughItsCopiesAreJudgedElsewhere) {
  SendMessage& m = message();
  ledger_->set_wanted(true, now_);
  std::multimap<Time, std::pair<size_t, uint64_t>> under_way;
  const auto pass = [&](Duration length) {
    for (const Time end = now_ + length; now_ < end; now_ = now_ + microseconds(100)) {
      while (!under_way.empty() && under_way.begin()->first <= now_) {
        const auto [on, number] = under_way.begin()->second;
        under_way.erase(under_way.begin());
        report(on, number);
      }
      ledger_->on_deadline(now_, now_);
      for (Path& p : ledger_->paths()) {
        if (!p.probe_wanted || p.copies.full()) continue;
        p.probe_wanted = false;
        const uint64_t number = ledger_->post_probe(p, now_);
        if (p.index == 1) under_way.emplace(now_ + microseconds(300), std::pair(1, number));
      }
      if (m.sendable() && path(1).usable())
        under_way.emplace(now_ + microseconds(300), std::pair(1, post(1, m)));
      settle();
    }
  };
  pass(milliseconds(20));
  for (int i = 0; i < 30 && !path(0).dead; ++i) {
    if (path(0).usable()) post(0, m);
    pass(milliseconds(10));
  }
  EXPECT_TRUE(path(0).dead);
  EXPECT_FALSE(path(1).dead);
}

TEST_F(LedgerTest, WhatArrivesLateIsNotSentAgain) {
  SendMessage& m = message();
  const uint64_t first = lose_one(m);
  ASSERT_EQ(ledger_->lost(), 1u);
  ASSERT_EQ(m.repairs, 1u);
  report(0, first);
  EXPECT_EQ(m.repairs, 0u) << "its repair had not left yet";
  EXPECT_TRUE(m.acked.test(0));
}

// Which of the two arrived is not known: only its own path can tell of the second.
TEST_F(LedgerTest, AFirstCopyThatComesLateIsNoEvidenceForItsRepair) {
  SendMessage& m = message();
  lose_one(m);
  ASSERT_EQ(m.repairs, 1u);
  const uint64_t repair = post(1, m);
  ASSERT_EQ(ledger_->in_flight(), kSegment);
  now_ = now_ + microseconds(10);
  ASSERT_TRUE(m.mark_acked(0));
  ledger_->sweep({now_, ++stamp_, false}, &m, 0, {});
  EXPECT_EQ(path(1).largest_arrived, 0u);
  EXPECT_FALSE(path(1).rtt.known());
  EXPECT_EQ(ledger_->in_flight(), kSegment) << "it is still on its way";
  now_ = now_ + milliseconds(1);
  report(1, repair);
  EXPECT_EQ(ledger_->in_flight(), 0u);
  EXPECT_EQ(path(1).rtt.latest(), milliseconds(1) + microseconds(10));
}

}  // namespace
}  // namespace weft
