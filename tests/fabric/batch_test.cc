// SPDX-License-Identifier: Apache-2.0
// Batches: what is taken is a prefix, what is delivered stays within the budget, and whoever sleeps
// is woken.
#include <poll.h>

#include <algorithm>

#include "tests/fabric/contract.h"

namespace weft::contract {
namespace {

WEFT_CONTRACT_SUITE(Batch);

TEST_P(Batch, WhatIsNotTakenIsNotSent) {
  const Link link = connect();
  std::vector<SegmentPost> posts;
  const int paths = fabric(0).paths(link.id[0]);
  for (int i = 0; i < 600; ++i)
    posts.push_back(segment(link, static_cast<PathIndex>(i / 16 % paths), 64));
  const size_t taken = fabric(0).post(world_->now(), posts);
  ASSERT_LE(taken, posts.size());
  ASSERT_GT(taken, 0u);
  const std::span<const SegmentPost> all(posts);
  EXPECT_TRUE(until([&] { return arrived(all.first(taken)); }));
  settle();
  EXPECT_EQ(sink_[1].data.size(), taken);
  expect_memory(all.first(taken));
  post_all(all.subspan(taken));
  EXPECT_TRUE(until([&] { return arrived(all); }));
  expect_memory(all);
}

TEST_P(Batch, NothingPostedIsNothingTaken) {
  connect();
  EXPECT_EQ(fabric(0).post(world_->now(), {}), 0u);
  EXPECT_EQ(fabric(0).post_control(world_->now(), {}), 0u);
  EXPECT_EQ(fabric(0).poll(world_->now(), 100, sink_[0]), 0u);
}

// Budgets as the ends may have them, for what comes alone and for a burst that comes as one.
class Budget : public Contract {
 protected:
  void keeps_to_its_budget(int paths);
};
INSTANTIATE_TEST_SUITE_P(Fabric, Budget, ::testing::ValuesIn(kinds()), kind_name);

void Budget::keeps_to_its_budget(int paths) {
  const Link link = connect();
  std::vector<SegmentPost> posts;
  paths = std::min(paths, fabric(0).paths(link.id[0]));
  for (int i = 0; i < 60; ++i)
    posts.push_back(segment(link, static_cast<PathIndex>(i % paths), 64));
  size_t done = 0;
  while (done < posts.size()) {  // without a poll in between
    const size_t taken = fabric(0).post(world_->now(), std::span(posts).subspan(done));
    ASSERT_GT(taken, 0u);
    done += taken;
  }
  for (int i = 0; i < 20; ++i) world_->pass_time();
  EXPECT_EQ(fabric(1).poll(world_->now(), 0, sink_[1]), 0u);
  EXPECT_EQ(sink_[1].total, 0u);
  for (size_t budget : {1u, 3u, 2u, 17u}) {
    const size_t before = sink_[1].total;
    EXPECT_EQ(fabric(1).poll(world_->now(), budget, sink_[1]), budget);
    EXPECT_EQ(sink_[1].total - before, budget);
  }
  EXPECT_TRUE(until([&] { return arrived(posts); }));
  expect_memory(posts);
}

TEST_P(Budget, IsKept) { keeps_to_its_budget(kMaxPaths); }
TEST_P(Budget, IsKeptWithinABurst) { keeps_to_its_budget(1); }

// However little a poll takes, as long as more is there the descriptors say so, and no longer.
class Waking : public Contract {
 protected:
  void wakes_who_waits(int paths);
};
INSTANTIATE_TEST_SUITE_P(Fabric, Waking, ::testing::ValuesIn(kinds_that([](const WorldKind& k) {
                           return k.wakes;
                         })),
                         kind_name);

void Waking::wakes_who_waits(int paths) {
  const Link link = connect();
  std::vector<pollfd> wait;
  for (int fd : fabric(1).wait_descriptors()) wait.push_back({fd, POLLIN, 0});
  const auto readable = [&](int timeout_ms) {
    return ::poll(wait.data(), wait.size(), timeout_ms) > 0;
  };
  EXPECT_FALSE(readable(0));
  std::vector<SegmentPost> posts;
  for (int i = 0; i < 12; ++i)
    posts.push_back(segment(link, static_cast<PathIndex>(i % paths), 64));
  size_t done = 0;
  while (done < posts.size()) {  // without a poll in between
    const size_t taken = fabric(0).post(world_->now(), std::span(posts).subspan(done));
    ASSERT_GT(taken, 0u);
    done += taken;
  }
  for (size_t left = posts.size(); left > 0; --left) {
    ASSERT_TRUE(readable(10000)) << "with " << left << " to come";
    ASSERT_EQ(fabric(1).poll(world_->now(), 1, sink_[1]), 1u);
  }
  EXPECT_FALSE(readable(0));
  expect_memory(posts);
}

TEST_P(Waking, ComesForWhatIsAlone) { wakes_who_waits(2); }
TEST_P(Waking, ComesForTheRestOfABurst) { wakes_who_waits(1); }

}  // namespace
}  // namespace weft::contract
