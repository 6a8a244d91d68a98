// SPDX-License-Identifier: Apache-2.0
// What the network may bring: cut short, flipped, or never ours at all. Decoders answer false or
// something within their bounds, and read nothing outside. Each input lies in a block of exactly
// its size, so that a sanitizer sees a read past it.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/wire/statements.h"
#include "transport/wire/control.h"
#include "transport/wire/handshake.h"
#include "transport/wire/packet.h"

namespace weft::wire {
namespace {

// Some bytes in a heap block of their own.
class Block {
 public:
  explicit Block(std::span<const std::byte> bytes)
      : size_(bytes.size()), data_(new std::byte[bytes.size()]) {
    if (size_ != 0) std::memcpy(data_.get(), bytes.data(), size_);
  }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

// Counts statements, and those that break a promise of their decoder.
struct Judge {
  int heard = 0, wrong = 0;
  void check(bool good) { ++heard, wrong += !good; }
  template <class S>
  void on(const S&) {
    ++heard;
  }
  void on(const Region& s) { check(s.rails <= kMaxRails && s.base + s.length >= s.base); }
  void on(const Grant& s) {
    bool good = s.parts >= 1 && s.parts <= kMaxParts;
    for (int i = 0; good && i < s.parts; ++i) {
      const GrantPart& p = s.part[static_cast<size_t>(i)];
      good = p.offset + p.size >= p.offset;
    }
    check(good);
  }
  void on(const Record& s) {
    check(s.part < kMaxParts && s.segment_bytes >= 128 && s.segment_bytes % 128 == 0);
  }
  void on(const PathAck& s) { check(s.words <= kMaxAckWords); }
  void on(const MessageAck& s) { check(s.words <= kMaxAckWords && s.part < kMaxParts); }
  void on(const Query& s) { check(s.part < kMaxParts); }
  void on(const PathState& s) { check(in(s.phase, 1, 3)); }
  void on(const FlowState& s) { check(in(s.role, 1, 2) && in(s.phase, 1, 3)); }
  void on(const FlowStateSeen& s) { check(in(s.role, 1, 2) && in(s.phase, 1, 3)); }
  void on(const OneSided& s) {
    check(in(s.kind, 1, 2) && s.offset + s.size >= s.offset &&
          s.remote_offset + s.size >= s.remote_offset);
  }

 private:
  template <class E>
  static bool in(E value, int low, int high) {
    return static_cast<int>(value) >= low && static_cast<int>(value) <= high;
  }
};

std::vector<std::byte> random_packet(Random& random) {
  std::vector<std::byte> packet(kMaxControlBytes);
  ControlWriter w(packet);
  for_each_statement([&]<class S>(S s) {
    if (random.chance(0.6)) return;
    randomize(random, &s);
    (void)w.add(s);
  });
  packet.resize(w.finish({1, 2}, {3, 4, 5, 0}));
  return packet;
}

TEST(Hostile, EveryStatementCutShortIsRefusedAtEveryLength) {
  for_each_statement([]<class S>(S) {
    Random random(7);
    for (int n = 0; n < 20; ++n) {
      S s{};
      randomize(random, &s);
      std::vector<std::byte> packet(kMaxControlBytes);
      ControlWriter w(packet);
      ASSERT_TRUE(w.add(s));
      const auto whole = w.statements();
      const auto count = static_cast<uint8_t>(whole[1]);
      for (size_t length = 0; length < whole.size(); ++length) {
        const Block cut(whole.first(length));
        Judge judge;
        // Cut off by the packet's end; nothing at all is no statement, and that is right.
        ASSERT_EQ(read_statements(cut.bytes(), judge), length == 0) << typeid(S).name() << length;
        ASSERT_EQ(judge.heard, 0);
        if (length < 4) continue;
        // Cut off by its own length.
        const Block body(whole.subspan(4, length - 4));
        Reader reader(body.bytes());
        S out{};
        ASSERT_FALSE(decode(reader, count, &out)) << typeid(S).name() << " body " << length - 4;
      }
    }
  });
}

TEST(Hostile, CountsThatTheTablesDoNotAllowAreRefused) {
  // Bodies long enough for any count.
  const std::vector<std::byte> zeros(65536);
  for (int count = 0; count < 256; ++count) {
    const auto accepts = [&]<class S>(S out) {
      Reader r(zeros);
      return decode(r, static_cast<uint8_t>(count), &out);
    };
    EXPECT_EQ(accepts(Region{}), count <= kMaxRails) << count;
    EXPECT_EQ(accepts(Grant{}), count >= 1 && count <= kMaxParts) << count;
    EXPECT_EQ(accepts(PathAck{}), count <= kMaxAckWords) << count;
    EXPECT_EQ(accepts(MessageAck{}), count <= kMaxAckWords) << count;
  }
}

template <class S>
bool accepted(const S& s) {
  std::vector<std::byte> packet(kMaxControlBytes);
  ControlWriter w(packet);
  EXPECT_TRUE(w.add(s));
  Judge judge;
  return read_statements(w.statements(), judge);
}

TEST(Hostile, FieldsOutOfRangeAreRefused) {
  Random random(3);
  const auto spoilt = [&]<class S>(S s, auto spoil) {
    randomize(random, &s);
    EXPECT_TRUE(accepted(s));
    spoil(s);
    return !accepted(s);
  };
  EXPECT_TRUE(spoilt(Region{}, [](Region& s) { s.base = UINT64_MAX, s.length = 1; }));
  EXPECT_TRUE(spoilt(Grant{}, [](Grant& s) { s.part[0].offset = 2, s.part[0].size = UINT64_MAX; }));
  EXPECT_TRUE(spoilt(Record{}, [](Record& s) { s.part = 8; }));
  EXPECT_TRUE(spoilt(Record{}, [](Record& s) { s.segment_bytes = 0; }));
  EXPECT_TRUE(spoilt(Record{}, [](Record& s) { s.segment_bytes = 1400; }));
  EXPECT_TRUE(spoilt(MessageAck{}, [](MessageAck& s) { s.part = 8; }));
  EXPECT_TRUE(spoilt(Query{}, [](Query& s) { s.part = UINT32_MAX; }));
  EXPECT_TRUE(spoilt(PathState{}, [](PathState& s) { s.phase = PathPhase{0}; }));
  EXPECT_TRUE(spoilt(PathState{}, [](PathState& s) { s.phase = PathPhase{4}; }));
  EXPECT_TRUE(spoilt(FlowState{}, [](FlowState& s) { s.role = FlowRole{3}; }));
  EXPECT_TRUE(spoilt(FlowState{}, [](FlowState& s) { s.phase = FlowPhase{0}; }));
  EXPECT_TRUE(spoilt(FlowStateSeen{}, [](FlowStateSeen& s) { s.role = FlowRole{0}; }));
  EXPECT_TRUE(spoilt(FlowStateSeen{}, [](FlowStateSeen& s) { s.phase = FlowPhase{4}; }));
  EXPECT_TRUE(spoilt(OneSided{}, [](OneSided& s) { s.kind = OneSidedKind{3}; }));
  EXPECT_TRUE(spoilt(OneSided{}, [](OneSided& s) { s.size = 2, s.offset = UINT64_MAX; }));
  EXPECT_TRUE(spoilt(OneSided{}, [](OneSided& s) { s.size = 2, s.remote_offset = UINT64_MAX; }));
}

TEST(Hostile, EveryHeaderCutShortIsRefusedAtEveryLength) {
  std::vector<std::byte> data(kDataHeaderBytes + 5), probe(kProbeBytes),
      control(kControlHeaderBytes);
  DataHeader h;
  h.message_bytes = h.payload_bytes = 5, h.segment_bytes = 128;
  encode_data(data, {1, 2}, h);
  encode_probe(probe, {1, 2}, {});
  encode_control(control, {1, 2}, {});
  DataHeader d;
  ProbeHeader p;
  ControlHeader c;
  CommonHeader common;
  ASSERT_TRUE(decode_data(data, &d));
  ASSERT_TRUE(decode_probe(probe, &p));
  ASSERT_TRUE(decode_control(control, &c));
  for (size_t n = 0; n < data.size(); ++n) {
    const Block cut{std::span(data).first(n)};
    EXPECT_FALSE(decode_data(cut.bytes(), &d)) << n;
    EXPECT_EQ(decode_common(cut.bytes(), &common), n >= kCommonHeaderBytes) << n;
  }
  for (size_t n = 0; n < probe.size(); ++n) {
    EXPECT_FALSE(decode_probe(Block(std::span(probe).first(n)).bytes(), &p)) << n;
    EXPECT_FALSE(decode_control(Block(std::span(control).first(n)).bytes(), &c)) << n;
  }
  probe.push_back(std::byte{0});
  EXPECT_FALSE(decode_probe(probe, &p)) << "longer than a probe";
}

// Every decoder of the library on one input; what is accepted must keep its promises.
void feed(std::span<const std::byte> bytes, int* accepted_count) {
  CommonHeader common;
  DataHeader d;
  ProbeHeader p;
  ControlHeader c;
  Judge judge;
  *accepted_count += decode_common(bytes, &common);
  if (decode_data(bytes, &d)) {
    ++*accepted_count;
    const uint64_t offset = uint64_t{d.segment} * d.segment_bytes;
    ASSERT_LE(offset + d.payload_bytes, d.message_bytes);
    ASSERT_EQ(kDataHeaderBytes + d.payload_bytes, bytes.size());
  }
  *accepted_count += decode_probe(bytes, &p);
  if (decode_control(bytes, &c)) {
    ++*accepted_count;
    ASSERT_EQ(kControlHeaderBytes + c.statement_bytes, bytes.size());
    (void)read_statements(bytes.subspan(kControlHeaderBytes), judge);
  }
  (void)read_statements(bytes, judge);
  ASSERT_EQ(judge.wrong, 0);

  ListenHandle handle;
  FrameHeader frame;
  Hello hello;
  Introduction welcome;
  Refused refused;
  Open open;
  Opened opened;
  Cookie cookie;
  (void)decode_handle(bytes, &handle);
  (void)decode_opened(bytes, &opened);
  (void)decode_hello_cookie(bytes, &cookie);
  if (decode_frame_header(bytes, &frame)) {
    ASSERT_LE(frame.body_bytes, kMaxFrameBody);
  }
  if (decode_hello(bytes, &hello)) welcome = hello.self;
  if (decode_hello(bytes, &hello) || decode_welcome(bytes, &welcome)) {
    ASSERT_GE(welcome.paths, 1);
    ASSERT_LE(welcome.fabric.size(), kMaxFabricName);
    ASSERT_LE(welcome.link_address.size(), kMaxHandshakeAddress);
  }
  if (decode_refused(bytes, &refused)) {
    ASSERT_LE(refused.words.size(), kMaxWords);
    for (char ch : refused.words) ASSERT_TRUE(ch >= 0x20 && ch < 0x7f);
  }
  if (decode_open(bytes, &open)) {
    ASSERT_NE(open.request, kTheHello);
  }
}

TEST(Hostile, GarbageIsRefusedOrWithinBounds) {
  constexpr uint64_t kSeed = 20240229;
  Random random(kSeed);
  int accepted_count = 0;
  for (int n = 0; n < 100000; ++n) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(n));
    std::vector<std::byte> bytes(random.below(random.chance(0.1) ? 2000 : 150));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
    // Half of it looks like ours as far as a common header goes, and has small numbers in it.
    if (random.chance(0.5) && bytes.size() >= 4) {
      for (std::byte& b : bytes) {
        if (random.chance(0.7)) b = std::byte{0};
      }
      bytes[0] = std::byte{0x57}, bytes[1] = std::byte{0x46}, bytes[2] = std::byte{1};
      bytes[3] = static_cast<std::byte>(random.below(5));
    }
    feed(Block(bytes).bytes(), &accepted_count);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(accepted_count, 1000) << "the garbage must not be refused at the first byte";
}

TEST(Hostile, FlippedPacketsAreRefusedOrWithinBounds) {
  constexpr uint64_t kSeed = 20240301;
  Random random(kSeed);
  int heard = 0, refused = 0;
  for (int n = 0; n < 100000; ++n) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(n));
    std::vector<std::byte> packet = random_packet(random);
    for (uint64_t flips = 1 + random.below(4); flips > 0; --flips) {
      packet[random.below(packet.size())] ^= static_cast<std::byte>(1 << random.below(8));
    }
    if (random.chance(0.2)) packet.resize(random.below(packet.size()));
    if (packet.size() < kControlHeaderBytes) continue;
    const Block block(packet);
    Judge judge;
    refused += !read_statements(block.bytes().subspan(kControlHeaderBytes), judge);
    heard += judge.heard;
    ASSERT_EQ(judge.wrong, 0);
  }
  EXPECT_GT(heard, 10000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace weft::wire
