// SPDX-License-Identifier: Apache-2.0
// Control: on every path, of every size, and never taken for data.
#include <algorithm>

#include "tests/fabric/contract.h"

namespace weft::contract {
namespace {

WEFT_CONTRACT_SUITE(Control);

TEST_P(Control, ArrivesWholeOnEveryPathInBothDirections) {
  const Link link = connect();
  for (int side : {0, 1}) {
    std::vector<ControlPost> posts;
    for (int p = 0; p < fabric(side).paths(link.id[side]); ++p) {
      for (size_t bytes : {kControlFixed, size_t{64}, size_t{65}, size_t{777}, kMaxControlBytes}) {
        posts.push_back(
            control(link, side, static_cast<PathIndex>(p), static_cast<uint16_t>(bytes)));
      }
    }
    post_all_control(side, posts);
    RecordingSink& sink = sink_[1 - side];
    EXPECT_TRUE(until([&] { return sink.control.size() == posts.size(); }))
        << sink.control.size() << " of " << posts.size() << " arrived";
    std::vector<uint32_t> sent, got;
    for (const ControlPost& p : posts) sent.push_back(p.bytes);
    for (const auto& [tag, count] : sink.control) {
      EXPECT_EQ(count, 1);
      got.push_back(sink.bytes[tag]);
    }
    EXPECT_EQ(got, sent);
  }
  EXPECT_TRUE(sink_[0].data.empty() && sink_[1].data.empty()) << "control was taken for data";
  expect_memory({});
}

TEST_P(Control, GoesItsWayBesideData) {
  const Link link = connect();
  std::vector<SegmentPost> data;
  std::vector<ControlPost> words;
  const int paths = fabric(0).paths(link.id[0]);
  for (int i = 0; i < 60; ++i) {
    const auto path = static_cast<PathIndex>(i % paths);
    data.push_back(segment(link, path, 1000));
    words.push_back(control(link, 0, path, static_cast<uint16_t>(20 + i)));
  }
  for (size_t i = 0; i < data.size(); i += 10) {
    post_all(std::span(data).subspan(i, 10));
    post_all_control(0, std::span(words).subspan(i, 10));
  }
  EXPECT_TRUE(until([&] { return arrived(data) && sink_[1].control.size() == words.size(); }));
  EXPECT_EQ(sink_[1].data.size(), data.size());
  EXPECT_EQ(sink_[1].unknown, 0u);
  expect_memory(data);
}

TEST_P(Control, IsCopiedWhenItIsPosted) {
  const Link link = connect();
  std::vector<ControlPost> posts = {control(link, 0, 0, 500), control(link, 0, 0, 600)};
  post_all_control(0, posts);
  for (ControlPost& p : posts) p.data.fill(std::byte{0x55});
  EXPECT_TRUE(until([&] { return sink_[1].control.size() == 2; }));
  EXPECT_EQ(sink_[1].unknown, 0u);
}

}  // namespace
}  // namespace weft::contract
