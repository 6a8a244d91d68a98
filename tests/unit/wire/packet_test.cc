// SPDX-License-Identifier: Apache-2.0
// The fixed headers: their layout, their round trip, and each way in which one can be wrong.
#include "transport/wire/packet.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "transport/base/random.h"

namespace weft::wire {
namespace {

using Bytes = std::vector<std::byte>;

const Address kTo{0x11223344, 0x5566778899aabbcc};

DataHeader good_header() {
  DataHeader h;
  h.packet = kFirstPacket;
  h.segment = 2, h.segment_bytes = 256;
  h.message_bytes = 600, h.payload_bytes = 88;
  return h;
}

Bytes data_packet(const DataHeader& h) {
  Bytes out(kDataHeaderBytes + h.payload_bytes);
  EXPECT_EQ(encode_data(out, kTo, h), kDataHeaderBytes);
  return out;
}

template <class T>
T at(const Bytes& bytes, size_t offset) {
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

TEST(Packet, DataIsLaidOutAsTheTableSays) {
  DataHeader h;
  h.packet = 0x0102030405060708, h.path = 0x1112, h.part = 0x13, h.rail = 0x14;
  h.flow = 0x21222324, h.number = 0x31323334, h.segment = 0, h.message_bytes = 5;
  h.segment_bytes = 1408, h.payload_bytes = 5;
  const Bytes b = data_packet(h);
  EXPECT_EQ(at<uint16_t>(b, 0), 0x4657);
  EXPECT_EQ(at<char>(b, 0), 'W');
  EXPECT_EQ(at<uint8_t>(b, 2), 1);
  EXPECT_EQ(at<uint8_t>(b, 3), 1);
  EXPECT_EQ(at<uint32_t>(b, 4), kTo.connection);
  EXPECT_EQ(at<uint64_t>(b, 8), kTo.token);
  EXPECT_EQ(at<uint64_t>(b, 16), h.packet);
  EXPECT_EQ(at<uint16_t>(b, 24), h.path);
  EXPECT_EQ(at<uint8_t>(b, 26), h.part);
  EXPECT_EQ(at<uint8_t>(b, 27), h.rail);
  EXPECT_EQ(at<uint32_t>(b, 28), h.flow);
  EXPECT_EQ(at<uint32_t>(b, 32), h.number);
  EXPECT_EQ(at<uint32_t>(b, 36), h.segment);
  EXPECT_EQ(at<uint64_t>(b, 40), h.message_bytes);
  EXPECT_EQ(at<uint32_t>(b, 48), h.segment_bytes);
  EXPECT_EQ(at<uint32_t>(b, 52), h.payload_bytes);
  EXPECT_EQ(at<uint64_t>(b, 56), 0u);
}

TEST(Packet, ProbeAndControlAreLaidOutAsTheTablesSay) {
  Bytes b(kProbeBytes, std::byte{0xff});
  EXPECT_EQ(encode_probe(b, kTo, {0x0102030405060708, 0x1112, 0x13}), kProbeBytes);
  EXPECT_EQ(at<uint8_t>(b, 3), 2);
  EXPECT_EQ(at<uint64_t>(b, 16), 0x0102030405060708u);
  EXPECT_EQ(at<uint16_t>(b, 24), 0x1112);
  EXPECT_EQ(at<uint8_t>(b, 26), 0x13);
  EXPECT_EQ(at<uint8_t>(b, 27), 0);
  EXPECT_EQ(at<uint32_t>(b, 28), 0u);

  b.assign(kControlHeaderBytes + 3, std::byte{0xff});
  EXPECT_EQ(encode_control(b, kTo, {0x0102030405060708, 0x11121314, 0x15, 3}), kControlHeaderBytes);
  EXPECT_EQ(at<uint8_t>(b, 3), 3);
  EXPECT_EQ(at<uint64_t>(b, 16), 0x0102030405060708u);
  EXPECT_EQ(at<uint32_t>(b, 24), 0x11121314u);
  EXPECT_EQ(at<uint8_t>(b, 28), 0x15);
  EXPECT_EQ(at<uint8_t>(b, 29), 0);
  EXPECT_EQ(at<uint16_t>(b, 30), 3);
}

TEST(Packet, HeadersRoundTrip) {
  Random r(1);
  for (int n = 0; n < 20000; ++n) {
    DataHeader h;
    h.packet = r.next(), h.path = static_cast<uint16_t>(r.next());
    h.part = static_cast<uint8_t>(r.below(8)), h.rail = static_cast<uint8_t>(r.next());
    h.flow = static_cast<uint32_t>(r.next()), h.number = static_cast<uint32_t>(r.next());
    h.segment_bytes = 128 * static_cast<uint32_t>(1 + r.below(11));
    h.message_bytes = r.next() >> (24 + r.below(40));
    const uint64_t segments =
        h.message_bytes == 0 ? 1 : (h.message_bytes - 1) / h.segment_bytes + 1;
    h.segment = static_cast<uint32_t>(r.below(std::min(segments, uint64_t{UINT32_MAX})));
    const uint64_t rest = h.message_bytes - uint64_t{h.segment} * h.segment_bytes;
    h.payload_bytes = static_cast<uint32_t>(std::min<uint64_t>(rest, h.segment_bytes));
    const Bytes packet = data_packet(h);
    CommonHeader common;
    DataHeader out;
    ASSERT_TRUE(decode_common(packet, &common));
    ASSERT_EQ(common.kind, Kind::kData);
    ASSERT_EQ(common.to, kTo);
    ASSERT_TRUE(decode_data(packet, &out));
    ASSERT_EQ(data_packet(out), packet);
    ASSERT_EQ(out.segment, h.segment);
    ASSERT_EQ(out.message_bytes, h.message_bytes);
  }
  Bytes probe(kProbeBytes);
  encode_probe(probe, kTo, {77, 5, 3});
  ProbeHeader p;
  ASSERT_TRUE(decode_probe(probe, &p));
  EXPECT_EQ(p.packet, 77u);
  EXPECT_EQ(p.path, 5);
  EXPECT_EQ(p.rail, 3);
  Bytes control(kControlHeaderBytes + 10);
  encode_control(control, kTo, {1, 2, 3, 10});
  ControlHeader c;
  ASSERT_TRUE(decode_control(control, &c));
  EXPECT_EQ(c.stamp, 1u);
  EXPECT_EQ(c.poll_gap_ns, 2u);
  EXPECT_EQ(c.rail, 3);
  EXPECT_EQ(c.statement_bytes, 10);
}

TEST(Packet, AnEmptyMessageHasOneSegmentOfNoBytes) {
  DataHeader h = good_header();
  h.message_bytes = h.payload_bytes = h.segment = 0;
  DataHeader out;
  EXPECT_TRUE(decode_data(data_packet(h), &out));
  h.segment = 1;
  EXPECT_FALSE(decode_data(data_packet(h), &out));
}

TEST(Packet, EachInconsistentDataHeaderIsRefused) {
  DataHeader out;
  ASSERT_TRUE(decode_data(data_packet(good_header()), &out));
  struct Case {
    const char* what;
    std::function<void(DataHeader&)> spoil;
  };
  const Case cases[] = {
      {"no segment size", [](DataHeader& h) { h.segment_bytes = 0; }},
      {"a segment size off the lines",
       [](DataHeader& h) { h.segment_bytes = 250, h.payload_bytes = 100; }},
      {"a segment size below a line",
       [](DataHeader& h) { h.segment_bytes = h.payload_bytes = 64; }},
      {"a segment past the message", [](DataHeader& h) { h.segment = 3; }},
      {"a whole segment past it", [](DataHeader& h) { h.segment = 3, h.payload_bytes = 256; }},
      {"an empty segment at its end",
       [](DataHeader& h) { h.message_bytes = 512, h.payload_bytes = 0; }},
      {"a segment far past it", [](DataHeader& h) { h.segment = UINT32_MAX; }},
      {"a short payload in the middle", [](DataHeader& h) { h.segment = 1; }},
      {"a last segment that is too long", [](DataHeader& h) { h.message_bytes = 599; }},
      {"a last segment that is too short", [](DataHeader& h) { h.message_bytes = 601; }},
      {"an empty message with bytes", [](DataHeader& h) { h.message_bytes = h.segment = 0; }},
      {"a message too large for it", [](DataHeader& h) { h.message_bytes = UINT64_MAX; }},
  };
  for (const Case& c : cases) {
    DataHeader h = good_header();
    c.spoil(h);
    EXPECT_FALSE(decode_data(data_packet(h), &out)) << c.what;
  }
  Bytes packet = data_packet(good_header());
  packet.pop_back();
  EXPECT_FALSE(decode_data(packet, &out)) << "a byte of payload is missing";
  packet.resize(packet.size() + 2);
  EXPECT_FALSE(decode_data(packet, &out)) << "a byte too many";
}

TEST(Packet, TheLargestMessageHasItsLastSegment) {
  DataHeader h = good_header();
  h.segment_bytes = 1u << 31, h.message_bytes = UINT64_MAX, h.segment = UINT32_MAX;
  h.payload_bytes = 0;
  DataHeader out;
  EXPECT_FALSE(decode_data(data_packet(h), &out)) << "a whole segment of 2 GB, and no payload";
}

TEST(Packet, WrongMagicVersionAndKindAreRefused) {
  const Bytes good = data_packet(good_header());
  CommonHeader out;
  ASSERT_TRUE(decode_common(good, &out));
  for (size_t byte = 0; byte < 3; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[byte] ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(decode_common(bad, &out)) << "byte " << byte << " bit " << bit;
    }
  }
  for (int kind = 0; kind < 256; ++kind) {
    Bytes other = good;
    other[3] = static_cast<std::byte>(kind);
    EXPECT_EQ(decode_common(other, &out), kind >= 1 && kind <= 3) << kind;
  }
}

TEST(Packet, ReservedFieldsAreIgnored) {
  Bytes packet = data_packet(good_header());
  for (size_t i = 56; i < 64; ++i) packet[i] = std::byte{0xff};
  DataHeader out;
  EXPECT_TRUE(decode_data(packet, &out));
  Bytes probe(kProbeBytes);
  encode_probe(probe, kTo, {1, 2, 3});
  for (size_t i = 27; i < 32; ++i) probe[i] = std::byte{0xff};
  ProbeHeader p;
  EXPECT_TRUE(decode_probe(probe, &p));
}

}  // namespace
}  // namespace weft::wire
