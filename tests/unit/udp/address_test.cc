// SPDX-License-Identifier: Apache-2.0
// The link address of the UDP fabric, taken from honest and from hostile peers.
#include "transport/udp/udp_address.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "transport/base/random.h"

namespace weft::udp {
namespace {

UdpAddress example() { return {IpAddress::v4(10, 1, 2, 3), {1, 49152, 65535}}; }

IpAddress ipv6(std::initializer_list<uint8_t> first, uint8_t last) {
  IpAddress out{true, {}};
  std::copy(first.begin(), first.end(), out.bytes.begin());
  out.bytes[15] = last;
  return out;
}
UdpAddress example6() { return {ipv6({0x20, 0x01, 0x0d, 0xb8}, 7), {1, 49152, 65535}}; }

TEST(UdpAddress, ComesBackAsItWasSent) {
  for (const UdpAddress& sent : {example(), example6()}) {
    const LinkAddress bytes = encode_address(sent);
    EXPECT_LE(bytes.size(), kMaxLinkAddress);
    const Result<UdpAddress> back = decode_address(bytes);
    ASSERT_TRUE(back) << back.status().words();
    EXPECT_EQ(back->address, sent.address);
    EXPECT_EQ(back->ports, sent.ports);
  }
}

TEST(UdpAddress, AScopeStaysAtHome) {
  UdpAddress sent{ipv6({0xfe, 0x80}, 7), {9}};
  sent.address.scope = 3;
  EXPECT_EQ(sent.address.text(), "fe80::7%3");
  EXPECT_EQ(decode_address(encode_address(sent))->address.scope, 0u);
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
  for (const UdpAddress& sent : {example(), example6()}) {
    LinkAddress bytes = encode_address(sent);
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(decode_address({bytes.data(), length})) << length << " bytes";
    }
    bytes.push_back(std::byte{1});
    EXPECT_FALSE(decode_address(bytes));
  }
}

TEST(UdpAddress, RefusesWhatNamesNobodyAndSaysWhy) {
  const auto refusal = [](UdpAddress address) {
    const auto out = decode_address(encode_address(address));
    EXPECT_FALSE(out);
    EXPECT_EQ(out.status().code(), Code::kRemote);
    return out.status().words();
  };
  UdpAddress a = example();
  a.address = IpAddress::v4(0, 0, 0, 0);
  EXPECT_NE(refusal(a).find("0.0.0.0"), std::string::npos);
  a.address = IpAddress::v4(224, 0, 0, 1);
  EXPECT_NE(refusal(a).find("224.0.0.1"), std::string::npos);
  a.address = IpAddress::v4(255, 255, 255, 255);
  EXPECT_NE(refusal(a).find("255.255.255.255"), std::string::npos);
  a.address = ipv6({}, 0);
  EXPECT_NE(refusal(a).find(":: is not"), std::string::npos);
  a.address = ipv6({0xff, 0x02}, 1);
  EXPECT_NE(refusal(a).find("ff02::1"), std::string::npos);
  a.address = ipv6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0}, 1);
  EXPECT_NE(refusal(a).find("::ffff:10.0.0.1"), std::string::npos) << "IPv4 in disguise";
  a = example();
  a.ports[1] = 0;
  EXPECT_NE(refusal(a).find("port 0"), std::string::npos);
  a.ports.clear();
  EXPECT_NE(refusal(a).find("0 ports"), std::string::npos);
}

TEST(UdpAddress, RefusesOtherVersionsAndFamilies) {
  for (size_t field : {0u, 1u}) {
    LinkAddress bytes = encode_address(example());
    bytes[field] = std::byte{5};
    EXPECT_FALSE(decode_address(bytes)) << "field " << field;
  }
}

TEST(UdpAddress, WhatItAcceptsOfRandomBytesIsWhole) {
  constexpr uint64_t kSeed = 1;
  Random random(kSeed);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    LinkAddress bytes = encode_address(i % 2 == 0 ? example() : example6());
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
