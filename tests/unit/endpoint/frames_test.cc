// SPDX-License-Identifier: Apache-2.0
// The handshake's bytes: what is encoded is decoded, and nothing else is.
#include <gtest/gtest.h>

#include <cstring>

#include "transport/base/random.h"
#include "transport/wire/handshake.h"

namespace weft::wire {
namespace {

Introduction sample() {
  Introduction i;
  i.incarnation = 0x1122334455667788;
  i.context = 9;
  i.device = 3;
  i.traffic_class = -1;
  i.address = {77, 0xabcdef};
  i.segment_bytes = 16384;
  i.paths = 32;
  i.offloads = {.places = true, .ordered_path = true};
  i.fabric = "udp";
  i.link_address.assign(100, std::byte{5});
  return i;
}

void expect_same(const Introduction& a, const Introduction& b) {
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
  EXPECT_EQ(a.fabric, b.fabric);
  EXPECT_EQ(a.link_address, b.link_address);
}

std::span<const std::byte> body(const std::vector<std::byte>& frame) {
  return std::span(frame).subspan(kFrameHeaderBytes);
}

TEST(Handle, RoundTripsAndRefusesOthers) {
  ListenHandle handle;
  handle.address = IpAddress::v4(10, 1, 2, 3);
  handle.port = 4711;
  handle.incarnation = 5;
  handle.context = 6;
  handle.device = 7;
  handle.cookie.fill(std::byte{8});
  std::array<std::byte, kHandleBytes> bytes;
  encode_handle(bytes, handle);
  ListenHandle out;
  ASSERT_TRUE(decode_handle(bytes, &out));
  EXPECT_EQ(out.address, handle.address);
  EXPECT_EQ(out.port, 4711);
  EXPECT_EQ(out.incarnation, 5u);
  EXPECT_EQ(out.context, 6u);
  EXPECT_EQ(out.device, 7u);
  EXPECT_EQ(out.cookie, handle.cookie);
  for (size_t size = 0; size < 60; ++size) {
    EXPECT_FALSE(decode_handle(std::span(bytes).first(size), &out)) << size;
  }
  auto wrong = bytes;
  wrong[0] ^= std::byte{1};
  EXPECT_FALSE(decode_handle(wrong, &out));
  wrong = bytes;
  wrong[4] = std::byte{9};
  EXPECT_FALSE(decode_handle(wrong, &out));
  EXPECT_EQ(out.version, 9) << "a caller can say which version it met";
}

TEST(Frames, RoundTripAndEveryTruncationIsRefused) {
  std::vector<std::byte> frame;
  Hello hello;
  hello.cookie.fill(std::byte{3});
  hello.to_incarnation = 1;
  hello.to_context = 2;
  hello.to_device = 3;
  hello.self = sample();
  append_hello(&frame, hello);
  FrameHeader header;
  ASSERT_TRUE(decode_frame_header(frame, &header));
  EXPECT_EQ(header.type, static_cast<uint8_t>(FrameType::kHello));
  EXPECT_EQ(header.body_bytes, frame.size() - kFrameHeaderBytes);
  Hello out;
  ASSERT_TRUE(decode_hello(body(frame), &out));
  EXPECT_EQ(out.cookie, hello.cookie);
  EXPECT_EQ(out.to_context, 2u);
  expect_same(out.self, hello.self);
  for (size_t size = 0; size < header.body_bytes; ++size) {
    EXPECT_FALSE(decode_hello(body(frame).first(size), &out)) << size;
  }
  frame.clear();
  append_welcome(&frame, sample());
  Introduction welcome;
  ASSERT_TRUE(decode_welcome(body(frame), &welcome));
  expect_same(welcome, sample());
  frame.clear();
  append_open(&frame, {12, hello.cookie});
  Open open;
  ASSERT_TRUE(decode_open(body(frame), &open));
  EXPECT_EQ(open.request, 12u);
  EXPECT_FALSE(decode_open(body(frame).first(19), &open));
  frame.clear();
  append_opened(&frame, {12, 34});
  Opened opened;
  ASSERT_TRUE(decode_opened(body(frame), &opened));
  EXPECT_EQ(opened.flow, 34u);
  EXPECT_FALSE(decode_opened(body(frame).first(7), &opened));
}

TEST(Frames, WordsFromOutsideArePrintableAndBounded) {
  std::vector<std::byte> frame;
  append_refused(&frame, 7, Refusal::kFabric,
                 std::string("no\nway\x1b[31m") + std::string(2000, 'x'));
  Refused out;
  ASSERT_TRUE(decode_refused(body(frame), &out));
  EXPECT_EQ(out.request, 7u);
  EXPECT_EQ(out.code, Refusal::kFabric);
  EXPECT_EQ(out.words.size(), kMaxWords);
  EXPECT_EQ(out.words.substr(0, 11), "no?way?[31m");
}

TEST(Frames, ValuesThatCannotBeAreRefused) {
  const auto decodes = [](const Introduction& i) {
    std::vector<std::byte> frame;
    append_welcome(&frame, i);
    Introduction out;
    return decode_welcome(body(frame), &out);
  };
  Introduction i = sample();
  EXPECT_TRUE(decodes(i));
  i.segment_bytes = 100;
  EXPECT_FALSE(decodes(i));
  i = sample(), i.segment_bytes = 0;
  EXPECT_FALSE(decodes(i));
  i = sample(), i.paths = 0;
  EXPECT_FALSE(decodes(i));
  i = sample(), i.paths = 257;
  EXPECT_FALSE(decodes(i));
  i = sample(), i.fabric.clear();
  EXPECT_FALSE(decodes(i));
}

TEST(Frames, RandomBytesNeverReadOutOfBounds) {
  // Under AddressSanitizer this would speak up; elsewhere it must simply return.
  for (uint64_t seed = 1; seed <= 20000; ++seed) {
    Random random(seed);
    std::vector<std::byte> bytes(random.below(300));
    for (auto& b : bytes) b = static_cast<std::byte>(random.next());
    Hello hello;
    Introduction introduction;
    Refused refused;
    FrameHeader header;
    ListenHandle handle;
    (void)decode_hello(bytes, &hello);
    (void)decode_welcome(bytes, &introduction);
    (void)decode_refused(bytes, &refused);
    EXPECT_FALSE(decode_frame_header(bytes, &header)) << "seed " << seed;
    EXPECT_FALSE(decode_handle(bytes, &handle)) << "seed " << seed;
  }
}

TEST(Frames, AResumptionNamesAConnectionAndItsToken) {
  std::vector<std::byte> frames;
  append_resume(&frames, {77, 0x1122334455667788});
  const size_t first = frames.size();
  append_resumed(&frames);
  FrameHeader header;
  ASSERT_TRUE(decode_frame_header(frames, &header));
  EXPECT_EQ(header.type, 8);
  EXPECT_EQ(header.body_bytes, 16u);
  Address named;
  ASSERT_TRUE(decode_resume(std::span(frames).subspan(kFrameHeaderBytes, 16), &named));
  EXPECT_EQ(named, (Address{77, 0x1122334455667788}));
  for (size_t bytes = 0; bytes < 16; ++bytes) {
    EXPECT_FALSE(decode_resume(std::span(frames).subspan(kFrameHeaderBytes, bytes), &named));
  }
  ASSERT_TRUE(decode_frame_header(std::span(frames).subspan(first), &header));
  EXPECT_EQ(header.type, 9);
  EXPECT_EQ(header.body_bytes, 0u);
}

}  // namespace
}  // namespace weft::wire
