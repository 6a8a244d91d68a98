// SPDX-License-Identifier: Apache-2.0
// Statements: their bytes are those of the tables, and each comes back as it was.
#include "transport/wire/control.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/wire/statements.h"

namespace weft::wire {
namespace {

// A body as a table of control.h describes it.
class Body {
 public:
  Body& u8(uint64_t v) { return put(v, 1); }
  Body& u16(uint64_t v) { return put(v, 2); }
  Body& u32(uint64_t v) { return put(v, 4); }
  Body& u64(uint64_t v) { return put(v, 8); }
  std::vector<uint8_t> bytes;

 private:
  Body& put(uint64_t v, int size) {
    for (int i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(v >> (8 * i)));
    return *this;
  }
};

template <class S>
void expect_bytes(const S& statement, uint8_t type, uint8_t count, const Body& body) {
  std::array<std::byte, kMaxControlBytes> packet;
  ControlWriter w(packet);
  ASSERT_TRUE(w.add(statement));
  Body whole;
  whole.u8(type).u8(count).u16(body.bytes.size());
  whole.bytes.insert(whole.bytes.end(), body.bytes.begin(), body.bytes.end());
  const auto got = w.statements();
  ASSERT_EQ(got.size(), whole.bytes.size()) << "type " << int{type};
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(static_cast<uint8_t>(got[i]), whole.bytes[i])
        << "type " << int{type} << " byte " << i;
  }
}

TEST(Control, StatementsAreLaidOutAsTheTableSays) {
  Region region;
  region.id = 0x01020304, region.epoch = 0x11121314, region.base = 0x2122232425262728;
  region.length = 0x3132333435363738, region.rights = 0x41424344, region.rails = 2;
  region.keys[0] = 0x5152535455565758, region.keys[1] = 0x6162636465666768;
  expect_bytes(region, 1, 2,
               Body()
                   .u32(region.id)
                   .u32(region.epoch)
                   .u64(region.base)
                   .u64(region.length)
                   .u32(region.rights)
                   .u32(0)
                   .u64(region.keys[0])
                   .u64(region.keys[1]));
  expect_bytes(RegionSeen{0x01020304, 0x11121314}, 2, 0, Body().u32(0x01020304).u32(0x11121314));
  Grant grant;
  grant.flow = 0x01020304, grant.number = 0x11121314, grant.parts = 2;
  grant.part[0] = {0x21222324, 0x31323334, 0x4142434445464748, 0x5152535455565758, -2};
  grant.part[1] = {1, 2, 3, 4, 5};
  expect_bytes(grant, 3, 2,
               Body()
                   .u32(grant.flow)
                   .u32(grant.number)
                   .u32(0x21222324)
                   .u32(0x31323334)
                   .u64(0x4142434445464748)
                   .u64(0x5152535455565758)
                   .u32(0xfffffffe)
                   .u32(0)
                   .u32(1)
                   .u32(2)
                   .u64(3)
                   .u64(4)
                   .u32(5)
                   .u32(0));
  expect_bytes(GrantsSeen{7, 8}, 4, 0, Body().u32(7).u32(8));
  expect_bytes(Record{1, 2, 0x0102030405060708, 1408, 0x0a0b, 5, 6}, 5, 0,
               Body().u32(1).u32(2).u64(0x0102030405060708).u32(1408).u16(0x0a0b).u8(5).u8(6));
  PathAck path_ack;
  path_ack.path = 0x0102, path_ack.epoch = 3, path_ack.largest = 0x1112131415161718;
  path_ack.hold_ns = 4, path_ack.marks = 5, path_ack.words = 1, path_ack.bits[0] = 6;
  expect_bytes(path_ack, 6, 1,
               Body().u16(0x0102).u16(0).u32(3).u64(0x1112131415161718).u32(4).u32(5).u64(6));
  MessageAck message_ack;
  message_ack.flow = 1, message_ack.number = 2, message_ack.part = 3, message_ack.base = 4;
  message_ack.latest = 5, message_ack.hold_ns = 6, message_ack.words = 2;
  message_ack.bits[0] = 7, message_ack.bits[1] = 8;
  expect_bytes(message_ack, 7, 2, Body().u32(1).u32(2).u32(3).u32(4).u32(5).u32(6).u64(7).u64(8));
  expect_bytes(FlowAck{1, 2}, 8, 0, Body().u32(1).u32(2));
  expect_bytes(Query{1, 2, 3}, 9, 0, Body().u32(1).u32(2).u32(3));
  expect_bytes(PathState{0x0102, PathPhase::kKilled, 4, 5}, 10, 0,
               Body().u16(0x0102).u8(3).u8(0).u32(4).u64(5));
  FlowState flow_state;
  flow_state.flow = 1, flow_state.role = FlowRole{2}, flow_state.phase = FlowPhase{3};
  flow_state.code = 4, flow_state.below = 5;
  expect_bytes(flow_state, 11, 0, Body().u32(1).u8(2).u8(3).u16(0).u32(4).u32(5));
  FlowStateSeen seen;
  seen.flow = 1, seen.role = FlowRole{2}, seen.phase = FlowPhase{1};
  expect_bytes(seen, 12, 0, Body().u32(1).u8(2).u8(1).u16(0));
  expect_bytes(Credit{0xffffffff, 0x0102030405060708}, 13, 0,
               Body().u32(0xffffffff).u32(0).u64(0x0102030405060708));
  expect_bytes(
      OneSided{1, OneSidedKind::kGet, 3, 4, 5, 6, 7, 8, 9}, 14, 0,
      Body().u64(1).u8(2).u8(0).u16(0).u32(3).u32(4).u32(5).u32(6).u32(0).u64(7).u64(8).u64(9));
  expect_bytes(Ping{7}, 15, 0, Body().u32(7));
  expect_bytes(Pong{8}, 16, 0, Body().u32(8));
}

// Hears one statement of type S; anything else is a failure.
template <class S>
struct Only {
  std::optional<S> heard;
  int others = 0;
  template <class Other>
  void on(const Other& s) {
    if constexpr (std::is_same_v<S, Other>)
      heard = s;
    else
      ++others;
  }
};

TEST(Control, EveryStatementRoundTrips) {
  for_each_statement([]<class S>(S) {
    Random random(static_cast<uint64_t>(sizeof(S)));
    for (int n = 0; n < 5000; ++n) {
      S in{};
      randomize(random, &in);
      std::array<std::byte, kMaxControlBytes> packet;
      ControlWriter w(packet);
      ASSERT_TRUE(w.add(in));
      Only<S> ear;
      ASSERT_TRUE(read_statements(w.statements(), ear)) << typeid(S).name() << " round " << n;
      ASSERT_TRUE(ear.heard.has_value());
      ASSERT_EQ(ear.others, 0);
      ASSERT_TRUE(fields(*ear.heard) == fields(in)) << typeid(S).name() << " round " << n;
    }
  });
}

// Writes down, in order, what it hears, by encoding it again.
struct Recorder {
  std::vector<std::byte> room = std::vector<std::byte>(65536);
  ControlWriter again{room};
  int heard = 0;
  template <class S>
  void on(const S& s) {
    EXPECT_TRUE(again.add(s));
    ++heard;
  }
};

TEST(Control, APacketFilledWithEverythingComesBackInOrder) {
  Random random(9);
  for (int n = 0; n < 500; ++n) {
    std::array<std::byte, kMaxControlBytes> packet;
    packet.fill(std::byte{0xa5});
    ControlWriter w(packet);
    EXPECT_TRUE(w.empty());
    int added = 0;
    for (bool room = true; room;) {
      const size_t before = w.statements().size();
      for_each_statement([&]<class S>(S s) {
        if (!room || random.chance(0.5)) return;
        randomize(random, &s);
        room = w.add(s);
        added += room;
      });
      if (!room) {
        ASSERT_GE(w.statements().size(), before);
      }
    }
    const size_t length = w.finish({1, 2}, {3, 4, 5, 0});
    ASSERT_LE(length, packet.size());
    const auto datagram = std::span<const std::byte>(packet).first(length);
    ControlHeader header;
    ASSERT_TRUE(decode_control(datagram, &header));
    ASSERT_EQ(header.stamp, 3u);
    ASSERT_EQ(header.statement_bytes, length - kControlHeaderBytes);
    Recorder recorder;
    ASSERT_TRUE(read_statements(datagram.subspan(kControlHeaderBytes), recorder));
    ASSERT_EQ(recorder.heard, added);
    const auto again = recorder.again.statements();
    ASSERT_EQ(again.size(), header.statement_bytes);
    ASSERT_EQ(std::memcmp(again.data(), datagram.data() + kControlHeaderBytes, again.size()), 0);
  }
}

TEST(Control, WhatDoesNotFitLeavesThePacketAsItWas) {
  for (size_t room = 0; room < 60; ++room) {
    std::vector<std::byte> packet(kControlHeaderBytes + room);
    ControlWriter w(packet);
    const bool fits = w.add(Ping{1});
    EXPECT_EQ(fits, room >= 8);
    const size_t before = w.statements().size();
    const bool second = w.add(Credit{1, 2});
    EXPECT_EQ(second, room >= before + 20);
    if (!second) {
      EXPECT_EQ(w.statements().size(), before);
      EXPECT_EQ(w.add(Ping{2}), room >= before + 8) << "a smaller one may still fit";
    }
  }
}

TEST(Control, UnknownTypesAndLongerBodiesArePassedOver) {
  Body bytes;
  bytes.u8(200).u8(9).u16(3).u8(1).u8(2).u8(3);         // a type of a later version
  bytes.u8(15).u8(0).u16(7).u32(42).u8(1).u8(2).u8(3);  // a ping that has grown
  bytes.u8(0).u8(0).u16(0);                             // type 0
  bytes.u8(16).u8(0).u16(4).u32(43);
  const auto statements = std::as_bytes(std::span(bytes.bytes));
  Recorder recorder;
  ASSERT_TRUE(read_statements(statements, recorder));
  EXPECT_EQ(recorder.heard, 2);
  EXPECT_EQ(recorder.again.statements().size(), 16u);
}

}  // namespace
}  // namespace weft::wire
