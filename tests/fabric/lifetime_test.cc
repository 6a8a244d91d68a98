// SPDX-License-Identifier: Apache-2.0
// Links beside each other, links that end, strangers, and paths that are killed.
#include "tests/fabric/contract.h"

namespace weft::contract {
namespace {

WEFT_CONTRACT_SUITE(Lifetime);
WEFT_CONTRACT_SUITE_FOR(Strangers, kinds_that([](const WorldKind& k) { return k.exposed; }));

TEST_P(Lifetime, ManyLinksShareOneFabric) {
  std::vector<Link> links;
  std::vector<SegmentPost> posts;
  for (int i = 0; i < 64; ++i) links.push_back(connect());
  std::set<LinkId> ids;
  for (const Link& link : links) {
    ids.insert(link.id[0]);
    for (PathIndex path : {PathIndex{0}, PathIndex{1}}) posts.push_back(segment(link, path, 300));
  }
  EXPECT_EQ(ids.size(), links.size());
  post_all(posts);
  EXPECT_TRUE(until([&] { return arrived(posts); }));
  expect_memory(posts);
}

TEST_P(Lifetime, WhatComesAfterCloseDoesNoHarm) {
  const Link doomed = connect();
  const Link other = connect();
  std::vector<SegmentPost> late, good;
  for (int i = 0; i < 20; ++i) late.push_back(segment(doomed, 0, 500, true));
  for (int i = 0; i < 20; ++i) good.push_back(segment(other, 0, 500));
  post_all(std::span(late).first(10));
  fabric(1).close_link(doomed.id[1]);
  std::set<uint32_t> landed_before_close;
  if (places()) {  // post_all polls where the NIC takes few posts a call, so some may have landed
    for (const auto& [tag, count] : sink_[1].data) landed_before_close.insert(tag);
  }
  post_all(std::span(late).subspan(10));
  post_all(good);
  EXPECT_TRUE(until([&] { return arrived(good); }));
  settle();
  std::set<uint32_t> expected = landed_before_close;
  for (const SegmentPost& p : good) expected.insert(tag_of(p));
  expect_memory_of_tags(expected);
  EXPECT_EQ(fabric(1).paths(doomed.id[1]), 0);
}

TEST_P(Lifetime, ClosingTwiceOrNothingDoesNoHarm) {
  const Link link = connect();
  const Link other = connect();
  fabric(0).close_link(link.id[0]);
  fabric(0).close_link(link.id[0]);
  fabric(0).close_link(other.id[0] + 54321);
  std::vector<SegmentPost> posts = {segment(other, 0, 300)};
  post_all(posts);
  EXPECT_TRUE(until([&] { return arrived(posts); }));
  expect_memory(posts);
}

TEST_P(Lifetime, LinksComeAndGoWithoutEnd) {
  for (int i = 0; i < 300; ++i) {
    const Link link = connect();
    std::vector<SegmentPost> posts = {segment(link, 0, 64)};
    post_all(posts);
    ASSERT_TRUE(until([&] { return arrived(posts); })) << "link " << i;
    for (int side : {0, 1}) fabric(side).close_link(link.id[side]);
  }
}

TEST_P(Strangers, SendGarbageAndDoNoHarm) {
  const Link link = connect();
  size_t thrown = 0;
  std::vector<SegmentPost> posts;
  for (int round = 0; round < 5; ++round) {
    thrown += world_->throw_garbage(link.address[1], random_);
    std::vector<SegmentPost> more;
    for (PathIndex path : {PathIndex{0}, PathIndex{1}}) more.push_back(segment(link, path, 1000));
    post_all(more);
    EXPECT_TRUE(until([&] { return arrived(more); }));
    settle();
    posts.insert(posts.end(), more.begin(), more.end());
  }
  EXPECT_GT(sink_[1].unknown, 0u) << "the garbage never arrived: this test proves nothing";
  EXPECT_LE(sink_[1].unknown, thrown);
  expect_memory(posts);
}

TEST_P(Lifetime, AKilledPathIsQuietUntilItIsOpenedAgain) {
  const Link link = connect();
  for (int side : {0, 1}) fabric(side).kill_path(link.id[side], 0, 0);
  if (places()) {
    const auto killed = [&](int side) {
      for (const PathChange& c : sink_[side].changes) {
        if (c.what == PathChange::What::kKilled && c.link == link.id[side] && c.path == 0 &&
            c.epoch == 0) {
          return true;
        }
      }
      return false;
    };
    EXPECT_TRUE(until([&] { return killed(0) && killed(1); }));
    // Nothing of the old epoch lands, yet its sources are given back.
    std::vector<SegmentPost> old = {segment(link, 0, 500)};
    post_all(old);
    EXPECT_TRUE(until([&] { return sink_[0].completions.count(old[0].cookie) != 0; }));
    settle();
    EXPECT_TRUE(sink_[1].data.empty());
    expect_memory({});
  } else {
    settle();
    EXPECT_TRUE(sink_[0].changes.empty()) << "a datagram fabric kills nothing";
  }
  for (int side : {0, 1}) fabric(side).reopen_path(link.id[side], 0, 1);
  std::vector<SegmentPost> fresh = {segment(link, 0, 500), segment(link, 1, 500)};
  fresh[0].epoch = 1;
  post_all(fresh);
  EXPECT_TRUE(until([&] { return arrived(fresh); }));
  expect_memory(fresh);
}

}  // namespace
}  // namespace weft::contract
