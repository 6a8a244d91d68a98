// SPDX-License-Identifier: Apache-2.0
// What a fabric says of itself, and how links come to be: from honest addresses only.
#include "tests/fabric/contract.h"

namespace weft::contract {
namespace {

WEFT_CONTRACT_SUITE(Setup);

TEST_P(Setup, SaysSaneThingsOfItself) {
  for (int side : {0, 1}) {
    Fabric& f = fabric(side);
    EXPECT_STRNE(f.name(), "");
    EXPECT_GT(f.max_segment_bytes(), 0u);
    EXPECT_EQ(f.max_segment_bytes() % kLineBytes, 0u);
    EXPECT_GE(f.max_paths(), 1);
    EXPECT_LE(f.max_paths(), kMaxPaths);
    EXPECT_LT(f.speed_mbps(), 10'000'000u);
    const Offloads o = f.offloads();
    EXPECT_TRUE(o.places || (!o.reliable && !o.ordered_path)) << "a datagram promises nothing";
    EXPECT_TRUE(!o.reliable || o.ordered_path);
  }
}

TEST_P(Setup, IsOfTheKindItIsListedAs) {
  EXPECT_EQ(GetParam().places, places());
  EXPECT_EQ(GetParam().ordered, fabric(0).offloads().ordered_path);
  EXPECT_EQ(GetParam().wakes, !fabric(0).wait_descriptors().empty());
  EXPECT_EQ(GetParam().exposed, world_->throw_garbage(connect().address[1], random_) != 0);
}

TEST_P(Setup, ALinkHasPathsOnceItIsConnected) {
  LinkAddress here, there;
  const LinkId a = *fabric(0).create_link(&here);
  const LinkId b = *fabric(1).create_link(&there);
  EXPECT_FALSE(here.empty());
  EXPECT_LE(here.size(), kMaxLinkAddress);
  EXPECT_EQ(fabric(0).paths(a), 0);
  ASSERT_TRUE(fabric(0).connect_link(a, there));
  ASSERT_TRUE(fabric(1).connect_link(b, here));
  EXPECT_GE(fabric(0).paths(a), 1);
  EXPECT_LE(fabric(0).paths(a), fabric(0).max_paths());
  EXPECT_EQ(fabric(0).paths(a), fabric(1).paths(b)) << "one path is one path on both sides";
}

TEST_P(Setup, RefusesTruncatedAndExtendedAddressesAndStaysUsable) {
  LinkAddress here, there;
  const LinkId a = *fabric(0).create_link(&here);
  ASSERT_TRUE(fabric(1).create_link(&there));
  for (size_t length = 0; length < there.size(); ++length) {
    const Status status = fabric(0).connect_link(a, {there.data(), length});
    EXPECT_FALSE(status) << length << " of " << there.size() << " bytes were enough";
    EXPECT_FALSE(status.words().empty());
  }
  LinkAddress longer = there;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(fabric(0).connect_link(a, longer));
  longer.assign(kMaxLinkAddress, std::byte{0xff});
  EXPECT_FALSE(fabric(0).connect_link(a, longer));
  EXPECT_EQ(fabric(0).paths(a), 0);
  const Status good = fabric(0).connect_link(a, there);
  EXPECT_TRUE(good) << good.words();
}

TEST_P(Setup, DamagedAddressesDoNoHarm) {
  LinkAddress here, there;
  ASSERT_TRUE(fabric(1).create_link(&there));
  size_t refused = 0;
  for (int round = 0; round < 2000; ++round) {
    LinkAddress damaged = there;
    for (uint64_t flips = 1 + random_.below(8); flips-- > 0;) {
      damaged[random_.below(damaged.size())] = static_cast<std::byte>(random_.next());
    }
    const auto link = fabric(0).create_link(&here);
    ASSERT_TRUE(link) << "round " << round << ": " << link.status().words();
    const Status status = fabric(0).connect_link(*link, damaged);
    if (!status) {
      ++refused;
      EXPECT_FALSE(status.words().empty());
      EXPECT_EQ(fabric(0).paths(*link), 0);
    } else {
      EXPECT_GE(fabric(0).paths(*link), 1);
      EXPECT_LE(fabric(0).paths(*link), fabric(0).max_paths());
    }
    fabric(0).close_link(*link);
  }
  EXPECT_GT(refused, 0u);
}

TEST_P(Setup, ConnectsALinkOnceAndOnlyOneThatIsThere) {
  const Link link = connect();
  EXPECT_FALSE(fabric(0).connect_link(link.id[0], link.address[1]));
  EXPECT_FALSE(fabric(0).connect_link(link.id[0] + 12345, link.address[1]));
  EXPECT_EQ(fabric(0).paths(link.id[0] + 12345), 0);
  fabric(0).close_link(link.id[0]);
  EXPECT_EQ(fabric(0).paths(link.id[0]), 0);
  EXPECT_FALSE(fabric(0).connect_link(link.id[0], link.address[1]));
}

TEST_P(Setup, RegistersManyRegionsAndLetsThemGo) {
  std::vector<MemoryKeys> keys;
  for (size_t i = 0; i < 100; ++i) {
    const auto k = fabric(0).register_memory({source_.data() + i * 4096, 4096});
    ASSERT_TRUE(k) << k.status().words();
    keys.push_back(*k);
  }
  for (const MemoryKeys& k : keys) fabric(0).deregister_memory(k);
}

}  // namespace
}  // namespace weft::contract
