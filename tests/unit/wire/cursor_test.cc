// SPDX-License-Identifier: Apache-2.0
// Writer and Reader: little-endian, and never a byte outside their span.
#include "transport/wire/cursor.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "transport/base/random.h"

namespace weft::wire {
namespace {

TEST(Cursor, WritesLittleEndianInOrder) {
  std::array<std::byte, 15> out;
  Writer w(out);
  w.put<uint8_t>(0x01);
  w.put<uint16_t>(0x0302);
  w.put<uint32_t>(0x07060504);
  w.put<int64_t>(0x0f0e0d0c0b0a0908);
  EXPECT_FALSE(w.failed());
  EXPECT_EQ(w.left(), 0u);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], static_cast<std::byte>(i + 1));
  Reader r(out);
  EXPECT_EQ(r.get<uint8_t>(), 1);
  EXPECT_EQ(r.get<uint16_t>(), 0x0302);
  EXPECT_EQ(r.get<uint32_t>(), 0x07060504u);
  EXPECT_EQ(r.get<int64_t>(), 0x0f0e0d0c0b0a0908);
  EXPECT_FALSE(r.failed());
  EXPECT_EQ(r.left(), 0u);
}

TEST(Writer, WhatDoesNotFitFailsAndStaysFailed) {
  std::array<std::byte, 8> room;
  room.fill(std::byte{0xa5});
  Writer w{std::span(room).first(6)};
  w.put<uint32_t>(1);
  w.put<uint32_t>(2);  // two bytes short
  EXPECT_TRUE(w.failed());
  w.put<uint8_t>(3);  // would fit, but its place is not known any more
  EXPECT_TRUE(w.failed());
  EXPECT_EQ(w.size(), 4u);
  for (size_t i = 4; i < 8; ++i) EXPECT_EQ(room[i], std::byte{0xa5});
  w.rewind(4);
  EXPECT_FALSE(w.failed());
  w.put<uint16_t>(4);
  EXPECT_EQ(w.size(), 6u);
}

TEST(Writer, PatchesOnlyWhatWasPut) {
  std::array<std::byte, 8> room{};
  Writer w(room);
  w.put<uint32_t>(0);
  w.patch<uint16_t>(2, 0x1234);
  w.patch<uint16_t>(3, 0xffff);  // reaches past size()
  EXPECT_EQ(room[2], std::byte{0x34});
  EXPECT_EQ(room[3], std::byte{0x12});
  EXPECT_EQ(room[4], std::byte{0});
}

TEST(Reader, PastTheEndIsZeroAndFailedForGood) {
  const std::vector<std::byte> bytes(5, std::byte{0xff});
  Reader r(bytes);
  EXPECT_EQ(r.get<uint32_t>(), 0xffffffffu);
  EXPECT_EQ(r.get<uint16_t>(), 0);
  EXPECT_TRUE(r.failed());
  EXPECT_EQ(r.get<uint8_t>(), 0) << "though one byte is left";
  EXPECT_TRUE(r.get_bytes(1).empty());
  EXPECT_EQ(r.left(), 0u);
  Reader huge(bytes);
  huge.skip(SIZE_MAX);
  EXPECT_TRUE(huge.failed());
}

TEST(Cursor, RandomSequencesRoundTrip) {
  Random random(1);
  for (int n = 0; n < 2000; ++n) {
    std::vector<std::byte> room(random.below(200));
    std::vector<std::pair<int, uint64_t>> put;
    Writer w(room);
    while (!w.failed()) {
      const int kind = static_cast<int>(random.below(4));
      const uint64_t v = random.next();
      switch (kind) {
        case 0: w.put<uint8_t>(static_cast<uint8_t>(v)); break;
        case 1: w.put<uint16_t>(static_cast<uint16_t>(v)); break;
        case 2: w.put<uint32_t>(static_cast<uint32_t>(v)); break;
        case 3: w.put<uint64_t>(v); break;
      }
      if (!w.failed()) put.push_back({kind, v});
    }
    Reader r{std::span(room).first(w.size())};
    for (const auto& [kind, v] : put) {
      switch (kind) {
        case 0: ASSERT_EQ(r.get<uint8_t>(), static_cast<uint8_t>(v)); break;
        case 1: ASSERT_EQ(r.get<uint16_t>(), static_cast<uint16_t>(v)); break;
        case 2: ASSERT_EQ(r.get<uint32_t>(), static_cast<uint32_t>(v)); break;
        case 3: ASSERT_EQ(r.get<uint64_t>(), v); break;
      }
    }
    ASSERT_FALSE(r.failed());
    ASSERT_EQ(r.left(), 0u);
  }
}

}  // namespace
}  // namespace weft::wire
