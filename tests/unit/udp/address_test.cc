// SPDX-License-Identifier: Apache-2.0
// The link address of the UDP fabric, taken from honest and from hostile peers.
#include "transport/udp/udp_address.h"

#include <gtest/gtest.h>

#include "transport/base/random.h"

namespace weft::udp {
namespace {

UdpAddress example() { return {{10, 1, 2, 3}, {1, 49152, 65535}}; }

TEST(UdpAddress, ComesBackAsItWasSent) {
  const LinkAddress bytes = encode_address(example());
  EXPECT_LE(bytes.size(), kMaxLinkAddress);
  const Result<UdpAddress> back = decode_address(bytes);
  ASSERT_TRUE(back) << back.status().words();
  EXPECT_EQ(back->address, example().address);
  EXPECT_EQ(back->ports, example().ports);
}

TEST(UdpAddress, HoldsAsManyPortsAsALinkHasPaths) {
  UdpAddress full = example();
  full.ports.assign(kMaxPaths, 7);
  const LinkAddress bytes = encode_address(full);
  EXPECT_LE(bytes.size(), kMaxLinkAddress);
  EXPECT_TRUE(decode_address(bytes));
  full.ports.push_back(7);
  EXPECT_FALSE(decode_address(encode_address(full)));
}

TEST(UdpAddress, RefusesEveryTruncationAndEveryExtension) {
  LinkAddress bytes = encode_address(example());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_address({bytes.data(), length})) << length << " bytes";
  }
  bytes.push_back(std::byte{1});
  EXPECT_FALSE(decode_address(bytes));
}

TEST(UdpAddress, RefusesWhatNamesNobodyAndSaysWhy) {
  const auto refusal = [](UdpAddress address) {
    const auto out = decode_address(encode_address(address));
    EXPECT_FALSE(out);
    EXPECT_EQ(out.status().code(), Code::kRemote);
    return out.status().words();
  };
  UdpAddress a = example();
  a.address = {0, 0, 0, 0};
  EXPECT_NE(refusal(a).find("0.0.0.0"), std::string::npos);
  a.address = {224, 0, 0, 1};
  EXPECT_NE(refusal(a).find("224.0.0.1"), std::string::npos);
  a.address = {255, 255, 255, 255};
  EXPECT_NE(refusal(a).find("255.255.255.255"), std::string::npos);
  a = example();
  a.ports[1] = 0;
  EXPECT_NE(refusal(a).find("port 0"), std::string::npos);
  a.ports.clear();
  EXPECT_NE(refusal(a).find("0 ports"), std::string::npos);
}

TEST(UdpAddress, RefusesOtherVersionsAndFamilies) {
  for (size_t field : {0u, 1u}) {
    LinkAddress bytes = encode_address(example());
    bytes[field] = std::byte{6};
    EXPECT_FALSE(decode_address(bytes)) << "field " << field;
  }
}

TEST(UdpAddress, WhatItAcceptsOfRandomBytesIsWhole) {
  constexpr uint64_t kSeed = 1;
  Random random(kSeed);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    LinkAddress bytes = encode_address(example());
    bytes.resize(random.below(bytes.size() + 4));
    for (uint64_t flips = random.below(4); flips-- > 0 && !bytes.empty();) {
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    }
    const auto out = decode_address(bytes);
    if (!out) continue;
    ++accepted;
    ASSERT_EQ(encode_address(*out), bytes) << "seed " << kSeed << " round " << i;
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace weft::udp
