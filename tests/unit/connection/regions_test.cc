// SPDX-License-Identifier: Apache-2.0
// The memory that two ends may name to each other.
#include <gtest/gtest.h>

#include "multipath/connection/regions.h"

namespace weft {
namespace {

std::byte memory[1000];
constexpr uint64_t kKey = 5;

struct RegionReader {
  wire::Region region;
  template <class Other>
  void on(const Other&) {}
  void on(const wire::Region& r) { region = r; }
};

wire::Region announced(Regions& regions, RegionId id) {
  regions.announce(id);
  std::array<std::byte, kMaxControlBytes> packet;
  wire::ControlWriter writer(packet);
  EXPECT_TRUE(regions.compose(writer));
  RegionReader reader;
  EXPECT_TRUE(wire::read_statements(writer.statements(), reader));
  return reader.region;
}

TEST(Regions, ContainsOnlyWhatLiesWholeInside) {
  Regions r;
  RegionId id = 0;
  ASSERT_TRUE(r.add(memory + 100, 500, {&kKey, 1}, &id));
  EXPECT_TRUE(r.contains(id, memory + 100, 500));
  EXPECT_TRUE(r.contains(id, memory + 600, 0));
  EXPECT_FALSE(r.contains(id, memory + 99, 1));
  EXPECT_FALSE(r.contains(id, memory + 100, 501));
  EXPECT_FALSE(r.contains(id, memory + 599, 2));
  EXPECT_FALSE(r.contains(id, memory + 200, UINT64_MAX));
  EXPECT_FALSE(r.contains(id + 1, memory + 100, 1));
  r.remove(id);
  EXPECT_FALSE(r.contains(id, memory + 100, 1));
}

TEST(Regions, AReusedIdHasAHigherEpochAndTheOldOneIsUnknown) {
  Regions ours, theirs;
  RegionId id = 0, again = 0;
  ASSERT_TRUE(ours.add(memory, 100, {&kKey, 1}, &id));
  const wire::Region first = announced(ours, id);
  EXPECT_TRUE(theirs.learn(first));
  ours.remove(id);
  ASSERT_TRUE(ours.add(memory, 200, {&kKey, 1}, &again));
  ASSERT_EQ(id, again);
  const wire::Region second = announced(ours, again);
  EXPECT_GT(second.epoch, first.epoch);
  EXPECT_TRUE(theirs.learn(second));
  EXPECT_EQ(theirs.remote(id, first.epoch), nullptr);
  ASSERT_NE(theirs.remote(id, second.epoch), nullptr);
  EXPECT_FALSE(theirs.learn(first)) << "a late repetition does not bring the old one back";
  EXPECT_EQ(theirs.remote(id, second.epoch)->length, 200u);
}

TEST(Regions, AnAnnouncementIsRepeatedUntilThatVeryEpochIsConfirmed) {
  Regions r;
  RegionId id = 0;
  ASSERT_TRUE(r.add(memory, 100, {&kKey, 1}, &id));
  const wire::Region region = announced(r, id);
  EXPECT_FALSE(r.due());
  r.confirm({id, region.epoch + 1});
  r.repeat();
  EXPECT_TRUE(r.due());
  r.confirm({id, region.epoch});
  EXPECT_FALSE(r.unconfirmed());
  r.repeat();
  EXPECT_FALSE(r.due());
}

TEST(Regions, WhatIsOnlySentFromIsNeverAnnounced) {
  Regions r;
  RegionId id = 0;
  ASSERT_TRUE(r.add(memory, 100, {&kKey, 1}, &id));
  EXPECT_FALSE(r.due());
  EXPECT_FALSE(r.unconfirmed());
}

TEST(Regions, APeersIdBeyondTheBoundIsRefused) {
  Regions r;
  wire::Region region;
  region.id = kMaxRegions;
  region.epoch = 1;
  EXPECT_FALSE(r.learn(region));
}

}  // namespace
}  // namespace weft
