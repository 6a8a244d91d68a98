// SPDX-License-Identifier: Apache-2.0
// The out-of-band frames and the listener's handle: layout, round trip, bounds, truncation.
#include "transport/wire/handshake.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "transport/base/post.h"
#include "transport/base/random.h"

namespace weft::wire {
namespace {

using Bytes = std::vector<std::byte>;

Cookie random_cookie(Random& r) {
  Cookie c;
  for (std::byte& b : c) b = static_cast<std::byte>(r.next());
  return c;
}

Introduction random_introduction(Random& r) {
  Introduction i;
  i.incarnation = r.next(), i.context = r.next(), i.device = static_cast<uint32_t>(r.next());
  i.traffic_class = static_cast<int32_t>(r.next());
  i.address = {static_cast<uint32_t>(r.next()), r.next()};
  i.segment_bytes = 128 * static_cast<uint32_t>(1 + r.below(512));
  i.paths = static_cast<uint16_t>(1 + r.below(kMaxPaths));
  i.offloads = {r.chance(0.5), r.chance(0.5), r.chance(0.5), r.chance(0.5), r.chance(0.5)};
  i.fabric.assign(1 + r.below(kMaxFabricName), 'f');
  i.link_address.resize(r.below(kMaxHandshakeAddress + 1));
  for (std::byte& b : i.link_address) b = static_cast<std::byte>(r.next());
  return i;
}

void expect_equal(const Introduction& a, const Introduction& b) {
  EXPECT_EQ(a.incarnation, b.incarnation);
  EXPECT_EQ(a.context, b.context);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.traffic_class, b.traffic_class);
  EXPECT_EQ(a.address, b.address);
  EXPECT_EQ(a.segment_bytes, b.segment_bytes);
  EXPECT_EQ(a.paths, b.paths);
  EXPECT_EQ(a.offloads.places, b.offloads.places);
  EXPECT_EQ(a.offloads.reliable, b.offloads.reliable);
  EXPECT_EQ(a.offloads.ordered_path, b.offloads.ordered_path);
  EXPECT_EQ(a.offloads.timestamps, b.offloads.timestamps);
  EXPECT_EQ(a.offloads.ecn, b.offloads.ecn);
  EXPECT_EQ(a.fabric, b.fabric);
  EXPECT_EQ(a.link_address, b.link_address);
}

// Checks the frame's header; the body.
std::span<const std::byte> body_of(const Bytes& frame, FrameType type) {
  FrameHeader header;
  EXPECT_TRUE(decode_frame_header(frame, &header));
  EXPECT_EQ(header.version, kHandshakeVersion);
  EXPECT_EQ(header.type, static_cast<uint8_t>(type));
  EXPECT_EQ(header.body_bytes, frame.size() - kFrameHeaderBytes);
  return std::span(frame).subspan(kFrameHeaderBytes);
}

TEST(Handshake, HelloAndWelcomeRoundTripAndCutShortAreRefused) {
  Random r(1);
  for (int n = 0; n < 50; ++n) {
    Hello hello;
    hello.cookie = random_cookie(r), hello.to_incarnation = r.next(), hello.to_context = r.next();
    hello.to_device = static_cast<uint32_t>(r.next()), hello.self = random_introduction(r);
    Bytes frame;
    append_hello(&frame, hello);
    const auto body = body_of(frame, FrameType::kHello);
    Hello out;
    ASSERT_TRUE(decode_hello(body, &out));
    EXPECT_EQ(out.cookie, hello.cookie);
    EXPECT_EQ(out.to_incarnation, hello.to_incarnation);
    EXPECT_EQ(out.to_context, hello.to_context);
    EXPECT_EQ(out.to_device, hello.to_device);
    expect_equal(out.self, hello.self);
    Cookie cookie;
    ASSERT_TRUE(decode_hello_cookie(body, &cookie));
    EXPECT_EQ(cookie, hello.cookie);
    for (size_t length = 0; length < body.size(); ++length) {
      const Bytes cut(body.begin(), body.begin() + static_cast<ptrdiff_t>(length));
      ASSERT_FALSE(decode_hello(cut, &out)) << length;
      ASSERT_EQ(decode_hello_cookie(cut, &cookie), length >= 16) << length;
    }
    Bytes welcome;
    append_welcome(&welcome, hello.self);
    Introduction self;
    const auto answer = body_of(welcome, FrameType::kWelcome);
    ASSERT_TRUE(decode_welcome(answer, &self));
    expect_equal(self, hello.self);
    for (size_t length = 0; length < answer.size(); ++length) {
      const Bytes cut(answer.begin(), answer.begin() + static_cast<ptrdiff_t>(length));
      ASSERT_FALSE(decode_welcome(cut, &self)) << length;
    }
  }
}

TEST(Handshake, EachBadIntroductionIsRefused) {
  Random r(2);
  Introduction good = random_introduction(r);
  const auto accepted = [](const Introduction& i) {
    Bytes frame;
    append_welcome(&frame, i);
    Introduction out;
    return decode_welcome(std::span(frame).subspan(kFrameHeaderBytes), &out);
  };
  ASSERT_TRUE(accepted(good));
  Introduction bad = good;
  bad.fabric.clear();
  EXPECT_FALSE(accepted(bad));
  for (uint32_t segment : {0u, 127u, 1400u}) {
    bad = good, bad.segment_bytes = segment;
    EXPECT_FALSE(accepted(bad)) << segment;
  }
  for (int paths : {0, kMaxPaths + 1, 65535}) {
    bad = good, bad.paths = static_cast<uint16_t>(paths);
    EXPECT_FALSE(accepted(bad)) << paths;
  }
}

TEST(Handshake, SmallFramesRoundTrip) {
  Random r(3);
  Bytes frame;
  append_refused(&frame, 77, Refusal::kNoListener, "nobody\n\x01 here");
  Refused refused;
  auto body = body_of(frame, FrameType::kRefused);
  ASSERT_TRUE(decode_refused(body, &refused));
  EXPECT_EQ(refused.request, 77u);
  EXPECT_EQ(refused.code, Refusal::kNoListener);
  EXPECT_EQ(refused.words, "nobody?? here") << "nothing unprintable reaches a log";
  for (size_t n = 0; n < body.size(); ++n)
    EXPECT_FALSE(decode_refused(body.first(n), &refused)) << n;

  frame.clear();
  append_refused(&frame, 1, Refusal::kFailed, std::string(5000, 'x'));
  ASSERT_TRUE(decode_refused(body_of(frame, FrameType::kRefused), &refused));
  EXPECT_EQ(refused.words.size(), kMaxWords);

  frame.clear();
  const Open sent{5, random_cookie(r)};
  append_open(&frame, sent);
  Open open;
  body = body_of(frame, FrameType::kOpen);
  ASSERT_TRUE(decode_open(body, &open));
  EXPECT_EQ(open.request, 5u);
  EXPECT_EQ(open.cookie, sent.cookie);
  for (size_t n = 0; n < body.size(); ++n) EXPECT_FALSE(decode_open(body.first(n), &open)) << n;

  frame.clear();
  append_opened(&frame, {6, 7});
  Opened opened;
  body = body_of(frame, FrameType::kOpened);
  ASSERT_TRUE(decode_opened(body, &opened));
  EXPECT_EQ(opened.request, 6u);
  EXPECT_EQ(opened.flow, 7u);
  for (size_t n = 0; n < body.size(); ++n) EXPECT_FALSE(decode_opened(body.first(n), &opened)) << n;

  frame.clear();
  const Bytes statements(100, std::byte{9});
  append_last_word(&frame, statements);
  body = body_of(frame, FrameType::kLastWord);
  EXPECT_TRUE(std::equal(body.begin(), body.end(), statements.begin(), statements.end()));
  frame.clear();
  append_goodbye(&frame);
  EXPECT_TRUE(body_of(frame, FrameType::kGoodbye).empty());
}

TEST(Handshake, AHeaderThatIsNotOursOrTooLongIsRefused) {
  Bytes frame;
  append_goodbye(&frame);
  FrameHeader out;
  for (size_t n = 0; n < frame.size(); ++n) {
    EXPECT_FALSE(decode_frame_header(std::span(frame).first(n), &out)) << n;
  }
  for (size_t byte = 0; byte < 4; ++byte) {
    Bytes bad = frame;
    bad[byte] ^= std::byte{1};
    EXPECT_FALSE(decode_frame_header(bad, &out)) << byte;
  }
  Bytes other = frame;
  other[4] = std::byte{9};  // a version to come keeps the header
  EXPECT_TRUE(decode_frame_header(other, &out));
  EXPECT_EQ(out.version, 9);
  const uint32_t lengths[] = {kMaxFrameBody, kMaxFrameBody + 1, UINT32_MAX};
  for (uint32_t length : lengths) {
    std::memcpy(frame.data() + 8, &length, 4);
    EXPECT_EQ(decode_frame_header(frame, &out), length <= kMaxFrameBody) << length;
  }
}

TEST(Handshake, ASizeProbeIsAsLongAsItSaysOrRefused) {
  Random r(5);
  SizeProbe probe{false, random_cookie(r), r.next(), 1472};
  std::vector<std::byte> datagram(1472);
  SizeProbe out;
  for (const bool back : {false, true}) {
    probe.back = back;
    encode_size_probe(datagram, probe);
    ASSERT_TRUE(decode_size_probe(datagram, &out));
    EXPECT_EQ(out.back, back);
    EXPECT_EQ(out.cookie, probe.cookie);
    EXPECT_EQ(out.nonce, probe.nonce);
  }
  EXPECT_EQ(std::memcmp(datagram.data(), "WEFP\x01\x02", 6), 0);
  for (size_t n = 0; n < datagram.size(); ++n) {
    ASSERT_FALSE(decode_size_probe(std::span(datagram).first(n), &out)) << n;
  }
  for (size_t byte : {0, 1, 2, 3, 4, 5, 32, 33, 34, 35}) {
    auto bad = datagram;
    bad[byte] ^= std::byte{0x10};
    EXPECT_FALSE(decode_size_probe(bad, &out)) << byte;
  }
}

TEST(Handshake, AHandleRoundTripsAndItsWrongsAreRefused) {
  Random r(4);
  ListenHandle handle;
  handle.address = IpAddress::v4(127, 0, 0, 1), handle.port = 0x1234, handle.incarnation = r.next();
  handle.context = r.next(), handle.device = 5, handle.cookie = random_cookie(r);
  handle.probe_port = 0x5678;
  std::array<std::byte, kHandleBytes> bytes;
  encode_handle(bytes, handle);
  EXPECT_EQ(std::memcmp(bytes.data(), "WEFH\x01\x04\x34\x12\x7f\x00\x00\x01", 12), 0);
  ListenHandle out;
  ASSERT_TRUE(decode_handle(bytes, &out));
  EXPECT_EQ(out.address, handle.address);
  EXPECT_EQ(out.port, handle.port);
  EXPECT_EQ(out.incarnation, handle.incarnation);
  EXPECT_EQ(out.context, handle.context);
  EXPECT_EQ(out.device, handle.device);
  EXPECT_EQ(out.probe_port, handle.probe_port);
  EXPECT_EQ(out.cookie, handle.cookie);
  for (size_t n = 0; n < 60; ++n) EXPECT_FALSE(decode_handle(std::span(bytes).first(n), &out)) << n;
  handle.address = IpAddress::v6_loopback();
  encode_handle(bytes, handle);
  EXPECT_EQ(std::memcmp(bytes.data(), "WEFH\x01\x06\x34\x12\x00\x00", 10), 0);
  EXPECT_EQ(bytes[23], std::byte{1});
  ASSERT_TRUE(decode_handle(bytes, &out));
  EXPECT_EQ(out.address, handle.address);
  auto nobody = bytes;
  nobody[23] = std::byte{0};
  EXPECT_FALSE(decode_handle(nobody, &out)) << "an address that names nobody";
  for (size_t byte : {0, 1, 2, 3, 5}) {
    auto bad = bytes;
    bad[byte] ^= std::byte{1};
    EXPECT_FALSE(decode_handle(bad, &out)) << byte;
  }
  auto later = bytes;
  later[4] = std::byte{3};
  EXPECT_FALSE(decode_handle(later, &out));
  EXPECT_EQ(out.version, 3) << "so that the words can name it";
  auto no_port = bytes;
  no_port[6] = no_port[7] = std::byte{0};
  EXPECT_FALSE(decode_handle(no_port, &out));
}

}  // namespace
}  // namespace weft::wire
