// SPDX-License-Identifier: Apache-2.0
//
// Interface selection on made-up machines, and the list of this one.
#include "transport/system/interfaces.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

Interface make(const char* name, const char* address, bool up = true, bool running = true) {
  Interface made;
  made.name = name;
  made.address.ipv6 = inet_pton(AF_INET, address, made.address.bytes.data()) != 1;
  if (made.address.ipv6) {
    EXPECT_EQ(inet_pton(AF_INET6, address, made.address.bytes.data()), 1) << address;
  }
  made.up = up;
  made.running = running;
  made.loopback = made.name == "lo";
  return made;
}

const std::vector<Interface> kServer = {
    make("lo", "127.0.0.1"),         make("docker0", "172.17.0.1"),
    make("eth9", "10.9.0.1", false), make("eno1", "10.0.0.5", true, false),
    make("eth0", "fe80::1"),         make("eth0", "10.1.0.1"),
    make("eth1", "10.2.0.1"),        make("eth10", "10.3.0.1")};

std::string names(const std::vector<Interface>& all, std::string_view rule) {
  const Result<std::vector<Interface>> chosen = select_interfaces(all, rule);
  if (!chosen.ok()) return chosen.status().words();
  std::string words;
  for (const Interface& each : *chosen) words += (words.empty() ? "" : " ") + each.name;
  return words;
}

TEST(SelectInterfaces, DefaultIsTheFirstRealOneThatRuns) { EXPECT_EQ(names(kServer, ""), "eth0"); }

TEST(SelectInterfaces, LoopbackWhereThereIsNoOther) {
  EXPECT_EQ(names({kServer[0], kServer[1], kServer[2]}, ""), "lo");
}

TEST(SelectInterfaces, PrefixesByDefault) {
  EXPECT_EQ(names(kServer, "eth"), "eth0 eth1 eth10");
  EXPECT_EQ(names(kServer, "eth1"), "eth1 eth10");
  EXPECT_EQ(names(kServer, "docker,eth1"), "docker0 eth1 eth10");
  EXPECT_EQ(names(kServer, ",eno,,"), "eno1");
  EXPECT_EQ(names(kServer, "lo"), "lo");
}

TEST(SelectInterfaces, ExactNames) {
  EXPECT_EQ(names(kServer, "=eth1"), "eth1");
  EXPECT_EQ(names(kServer, "=lo,eth10"), "lo eth10");
}

TEST(SelectInterfaces, ExclusionKeepsLoopbackForLast) {
  EXPECT_EQ(names(kServer, "^docker"), "eno1 eth0 eth1 eth10");
  EXPECT_EQ(names(kServer, "^=eth1,docker0,eno1"), "eth0 eth10");
  EXPECT_EQ(names(kServer, "^docker,e"), "lo");
  EXPECT_EQ(names(kServer, "^"), "eth0") << "excluding nothing is no rule";
}

TEST(SelectInterfaces, NoMatchSaysWhatThereIs) {
  const auto chosen = select_interfaces(kServer, "ib");
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.status().code(), Code::kInvalidArgument);
  EXPECT_NE(chosen.status().words().find("'ib'"), std::string::npos);
  EXPECT_NE(chosen.status().words().find("eth1 (10.2.0.1)"), std::string::npos);
  EXPECT_NE(chosen.status().words().find("eth9 (10.9.0.1, down)"), std::string::npos);
  EXPECT_FALSE(select_interfaces({}, "").ok());
}

TEST(SelectInterfaces, ARuleThatNamesNothingIsRefused) {
  for (const char* rule : {",", "=", "=,"}) {
    EXPECT_NE(names(kServer, rule).find("names no interface; there are: "), std::string::npos)
        << rule << ": " << names(kServer, rule);
  }
}

TEST(SelectInterfaces, NeverOneThatIsDown) {
  EXPECT_NE(names(kServer, "eth9").find("no interface"), std::string::npos);
}

// Both families on one machine; ib1 has IPv6 alone, eth2 nothing but what every interface has.
const std::vector<Interface> kDual = {
    make("lo", "127.0.0.1"),     make("lo", "::1"),           make("eth2", "fe80::2"),
    make("eth0", "fe80::1"),     make("eth0", "2001:db8::1"), make("eth0", "10.1.0.1"),
    make("eth0", "2001:db8::2"), make("ib1", "fe80::9"),      make("ib1", "2001:db8:1::1")};

std::string addresses(const std::vector<Interface>& all, std::string_view rule,
                      FamilyChoice family) {
  const Result<std::vector<Interface>> chosen = select_interfaces(all, rule, family);
  if (!chosen.ok()) return chosen.status().words();
  std::string words;
  for (const Interface& each : *chosen) words += (words.empty() ? "" : " ") + each.address_text();
  return words;
}

TEST(SelectInterfaces, TakesOneAddressOfEachIpv4First) {
  EXPECT_EQ(addresses(kDual, "", FamilyChoice::kAuto), "10.1.0.1");
  EXPECT_EQ(addresses(kDual, "eth,ib", FamilyChoice::kAuto), "10.1.0.1 2001:db8:1::1");
  EXPECT_EQ(addresses(kDual, "^ib", FamilyChoice::kAuto), "10.1.0.1");
}

TEST(SelectInterfaces, KeepsToTheFamilyThatIsAskedFor) {
  EXPECT_EQ(addresses(kDual, "", FamilyChoice::kIpv6), "2001:db8::1");
  EXPECT_EQ(addresses(kDual, "=lo", FamilyChoice::kIpv6), "::1");
  EXPECT_EQ(addresses(kDual, "eth,ib", FamilyChoice::kIpv6), "2001:db8::1 2001:db8:1::1");
  EXPECT_EQ(addresses(kDual, "eth,ib", FamilyChoice::kIpv4), "10.1.0.1");
  const std::string words = addresses(kDual, "ib", FamilyChoice::kIpv4);
  EXPECT_NE(words.find("no interface with an IPv4 address"), std::string::npos) << words;
  EXPECT_NE(words.find("ib1 (2001:db8:1::1)"), std::string::npos) << words;
}

TEST(SelectInterfaces, TakesALinkLocalAddressOnlyWhereNothingElseIsLeft) {
  EXPECT_EQ(addresses(kDual, "eth2", FamilyChoice::kAuto), "fe80::2");
  EXPECT_EQ(addresses(kDual, "eth", FamilyChoice::kAuto), "10.1.0.1");
  EXPECT_EQ(addresses({kDual[2], kDual[0]}, "", FamilyChoice::kAuto), "127.0.0.1");
  EXPECT_EQ(addresses({kDual[2]}, "", FamilyChoice::kAuto), "fe80::2");
  EXPECT_EQ(addresses({make("eth0", "169.254.1.2"), make("eth0", "2001:db8::1")}, "",
                      FamilyChoice::kAuto),
            "2001:db8::1");
}

TEST(ListInterfaces, FindsThisMachinesLoopback) {
  const auto all = list_interfaces();
  ASSERT_TRUE(all.ok()) << all.status().words();
  const auto chosen = select_interfaces(*all, "=lo");
  if (!chosen.ok()) GTEST_SKIP() << "this machine has no loopback that is up";
  const Interface& lo = chosen->front();
  EXPECT_EQ(lo.address_text(), "127.0.0.1");
  EXPECT_TRUE(lo.loopback);
  EXPECT_GT(lo.index, 0u);
  EXPECT_GE(lo.mtu, 576u);
  EXPECT_EQ(lo.speed_mbps, 0u);
}

}  // namespace
}  // namespace weft
