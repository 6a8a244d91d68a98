// SPDX-License-Identifier: Apache-2.0
// Payload: whole, where it belongs, and nowhere else.
#include <algorithm>

#include "tests/fabric/contract.h"

namespace weft::contract {
namespace {

WEFT_CONTRACT_SUITE(Data);
WEFT_CONTRACT_SUITE_FOR(Datagrams, kinds_that([](const WorldKind& k) { return !k.places; }));
WEFT_CONTRACT_SUITE_FOR(Writes, kinds_that([](const WorldKind& k) { return k.places; }));
WEFT_CONTRACT_SUITE_FOR(Order, kinds_that([](const WorldKind& k) { return k.ordered; }));

TEST_P(Data, ArrivesWholeOnEveryPathAndNothingElseIsWritten) {
  const Link link = connect();
  std::vector<SegmentPost> posts;
  for (int p = 0; p < fabric(0).paths(link.id[0]); ++p) {
    const auto path = static_cast<PathIndex>(p);
    posts.push_back(segment(link, path, fabric(0).max_segment_bytes()));
    for (uint32_t bytes : {1u, 7u, 8u, 127u, 128u, 129u, 1000u})
      posts.push_back(segment(link, path, bytes));
  }
  post_all(posts);
  EXPECT_TRUE(until([&] { return arrived(posts); }));
  for (const SegmentPost& p : posts) {
    EXPECT_EQ(sink_[1].data[tag_of(p)], 1) << "path " << p.path << ", " << p.bytes << " bytes";
    EXPECT_EQ(sink_[1].bytes[tag_of(p)], p.bytes);
  }
  expect_memory(posts);
}

TEST_P(Data, BurstsOfEqualSegmentsStaySegments) {
  const Link link = connect();
  std::vector<SegmentPost> posts;
  const uint32_t bytes = std::min(fabric(0).max_segment_bytes(), 1408u);
  for (PathIndex path : {PathIndex{0}, PathIndex{1}}) {
    for (int i = 0; i < 70; ++i) posts.push_back(segment(link, path, bytes));
    posts.push_back(segment(link, path, 100));
  }
  post_all(posts);
  EXPECT_TRUE(until([&] { return arrived(posts); }));
  for (const SegmentPost& p : posts) EXPECT_EQ(sink_[1].bytes[tag_of(p)], p.bytes);
  expect_memory(posts);
}

TEST_P(Data, RunsBothWays) {
  const Link link = connect();
  std::vector<SegmentPost> there = {segment(link, 0, 512)};
  const ControlPost back = control(link, 1, 0, 100);
  post_all(there);
  post_all_control(1, {&back, 1});
  EXPECT_TRUE(until([&] { return arrived(there) && sink_[0].control.size() == 1; }));
  EXPECT_TRUE(sink_[0].data.empty());
  EXPECT_TRUE(sink_[1].control.empty());
  expect_memory(there);
}

TEST_P(Data, ASegmentWithoutPayloadArrivesAndWritesNothing) {
  const Link link = connect();
  std::vector<SegmentPost> posts;
  for (int i = 0; i < 5; ++i) posts.push_back(segment(link, 0, 0));
  post_all(posts);
  EXPECT_TRUE(until([&] { return arrived(posts); }));
  for (const SegmentPost& p : posts) EXPECT_EQ(sink_[1].bytes[tag_of(p)], 0u);
  expect_memory({});
}

TEST_P(Datagrams, NowhereIsHonoured) {
  const Link link = connect();
  std::vector<SegmentPost> kept, dropped;
  std::vector<SegmentPost> all;
  for (int i = 0; i < 20; ++i) {
    const bool nowhere = i % 2 == 0;
    const SegmentPost p = segment(link, 0, 1000, nowhere);
    (nowhere ? dropped : kept).push_back(p);
    all.push_back(p);
  }
  post_all(all);
  EXPECT_TRUE(until([&] { return arrived(all); }));
  expect_memory(kept);
}

TEST_P(Writes, ALandingSaysWhatWasPosted) {
  const Link link = connect();
  std::vector<SegmentPost> posts;
  for (int p = 0; p < fabric(0).paths(link.id[0]); ++p) {
    posts.push_back(segment(link, static_cast<PathIndex>(p), 100 + static_cast<uint32_t>(p)));
  }
  post_all(posts);
  ASSERT_TRUE(until([&] { return arrived(posts); }));
  for (const SegmentPost& p : posts) {
    const auto& landings = sink_[1].landings[p.immediate];
    ASSERT_EQ(landings.size(), 1u);
    EXPECT_EQ(landings[0].link, link.id[1]);
    EXPECT_EQ(landings[0].path, p.path);
    EXPECT_EQ(landings[0].epoch, p.epoch);
    EXPECT_EQ(landings[0].bytes, p.bytes);
  }
}

TEST_P(Order, IsKeptOnAPath) {
  const Link link = connect();
  std::vector<SegmentPost> posts;
  for (int i = 0; i < 200; ++i) posts.push_back(segment(link, 0, 64));
  post_all(posts);
  // Tags ascend in posting order, so at any time what has arrived is a prefix.
  EXPECT_TRUE(until([&] {
    const size_t count = sink_[1].data.size();
    EXPECT_TRUE(count == 0 || sink_[1].data.rbegin()->first == tag_of(posts[count - 1]));
    return count == posts.size();
  }));
}

TEST_P(Data, ASourceMayBeReusedOnceTheFabricIsDoneWithIt) {
  const Link link = connect();
  std::vector<SegmentPost> posts;
  const int paths = fabric(0).paths(link.id[0]);
  for (int i = 0; i < 40; ++i)
    posts.push_back(segment(link, static_cast<PathIndex>(i % paths), 1000));
  post_all(posts);
  std::set<uint64_t> reused;
  const auto reuse = [&](const SegmentPost& p) {
    std::fill_n(const_cast<std::byte*>(p.source), p.bytes, std::byte{0x55});
    reused.insert(p.cookie);
  };
  if (!places()) {
    for (const SegmentPost& p : posts) reuse(p);  // datagrams: at once
  }
  EXPECT_TRUE(until([&] {
    for (const SegmentPost& p : posts) {
      if (sink_[0].completions.count(p.cookie) && !reused.count(p.cookie)) reuse(p);
    }
    return reused.size() == posts.size() && arrived(posts);
  }));
  expect_memory(posts);
}

TEST_P(Data, EveryWriteCompletesOnceAndNoDatagramNeedsTo) {
  const Link link = connect();
  std::vector<SegmentPost> posts;
  for (int i = 0; i < 50; ++i) posts.push_back(segment(link, 0, 256));
  post_all(posts);
  ASSERT_TRUE(until([&] { return arrived(posts); }));
  settle();
  for (const SegmentPost& p : posts) {
    const int completions = sink_[0].completions[p.cookie];
    EXPECT_TRUE(places() ? completions == 1 : completions <= 1) << completions << " completions";
  }
  EXPECT_TRUE(sink_[1].completions.empty());
}

}  // namespace
}  // namespace weft::contract
