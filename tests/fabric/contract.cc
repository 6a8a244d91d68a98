// SPDX-License-Identifier: Apache-2.0
// What the contract's cases share.
#include "tests/fabric/contract.h"

#include <cstdlib>
#include <cstring>

namespace weft::contract {
namespace {

constexpr std::byte kUntouched{0xee};
constexpr size_t kPollBudget = 64;

uint64_t seed_from_environment() {
  const char* text = std::getenv("WEFT_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 0) : 1;
}

// The rest of a header or control packet, by tag: so that no other's would pass for it.
std::byte filler(uint32_t tag, size_t at) { return static_cast<std::byte>(tag * 31 + at * 7); }

void fill(std::byte* to, std::byte mark, uint32_t tag, size_t bytes) {
  to[0] = mark;
  std::memcpy(to + 1, &tag, sizeof tag);
  for (size_t i = kControlFixed; i < bytes; ++i) to[i] = filler(tag, i);
}

bool is_filled(const std::byte* from, uint32_t tag, size_t bytes) {
  for (size_t i = kControlFixed; i < bytes; ++i) {
    if (from[i] != filler(tag, i)) return false;
  }
  return true;
}

}  // namespace

void RecordingSink::receive(std::span<Datagram> batch) {
  for (Datagram& d : batch) {
    ++total;
    d.cookie = ++cookies_;
    EXPECT_EQ(d.destination, nullptr) << "the fabric answered for the sink";
    uint32_t tag = 0;
    const bool data_mark = d.size >= kHeaderBytes && d.bytes[0] == kDataMark;
    const bool control_mark = d.size >= kControlFixed && d.bytes[0] == kControlMark;
    if (!data_mark && !control_mark) {
      ++unknown;
      continue;
    }
    std::memcpy(&tag, d.bytes + 1, sizeof tag);
    if (!is_filled(d.bytes, tag, data_mark ? kHeaderBytes : d.size)) broken_header = true;
    if (control_mark) {
      ++control[tag];
      bytes[tag] = d.size;
      continue;
    }
    bytes[tag] = d.size - kHeaderBytes;
    const auto to = destinations.find(tag);
    d.destination = to == destinations.end() ? nullptr : to->second;
    d.header_bytes = kHeaderBytes;
  }
}

void RecordingSink::arrived(std::span<const Datagram> batch) {
  for (const Datagram& d : batch) {
    EXPECT_EQ(d.cookie, ++cookies_seen_) << "arrived() is not the batch of receive()";
    if (d.size < kHeaderBytes || d.bytes[0] != kDataMark) continue;
    uint32_t tag = 0;
    std::memcpy(&tag, d.bytes + 1, sizeof tag);
    ++data[tag];
  }
}

void RecordingSink::landed(std::span<const Landing> batch) {
  for (const Landing& l : batch) {
    ++total;
    ++data[l.immediate];
    bytes[l.immediate] = l.bytes;
    landings[l.immediate].push_back(l);
  }
}

void RecordingSink::completed(std::span<const Completion> batch) {
  for (const Completion& c : batch) ++total, ++completions[c.cookie];
}

void RecordingSink::path_changed(std::span<const PathChange> batch) {
  for (const PathChange& c : batch) ++total, changes.push_back(c);
}

Contract::Contract() : seed_(seed_from_environment()), random_(seed_) {}

void Contract::SetUp() {
  RecordProperty("seed", std::to_string(seed_));
  world_ = GetParam().make(seed_);
  source_.resize(kMemoryBytes);
  for (size_t i = 0; i < source_.size(); i += sizeof(uint64_t)) {
    const uint64_t word = random_.next();
    std::memcpy(&source_[i], &word, sizeof word);
  }
  target_.assign(kMemoryBytes, kUntouched);
  const auto source = fabric(0).register_memory({source_.data(), source_.size()});
  const auto target = fabric(1).register_memory({target_.data(), target_.size()});
  ASSERT_TRUE(source) << source.status().words();
  ASSERT_TRUE(target) << target.status().words();
  source_keys_ = *source;
  target_keys_ = *target;
}

void Contract::TearDown() {
  for (const RecordingSink& s : sink_) EXPECT_FALSE(s.broken_header) << "a header was damaged";
  EXPECT_EQ(world_->misuse(), "");
  if (HasFailure()) std::printf("to run it again: WEFT_TEST_SEED=%lu\n", seed_);
}

Contract::Link Contract::connect() {
  Link link{};
  for (int side : {0, 1}) {
    const auto id = fabric(side).create_link(&link.address[side]);
    EXPECT_TRUE(id) << id.status().words();
    if (id) link.id[side] = *id;
  }
  for (int side : {0, 1}) {
    const Status status = fabric(side).connect_link(link.id[side], link.address[1 - side]);
    EXPECT_TRUE(status) << status.words();
  }
  return link;
}

SegmentPost Contract::segment(const Link& link, PathIndex path, uint32_t bytes, bool to_nowhere) {
  const uint32_t tag = next_tag_++;
  SegmentPost post;
  post.link = link.id[0];
  post.path = path;
  post.bytes = bytes;
  post.cookie = tag;
  if (source_used_ + bytes > source_.size()) source_used_ = 0;  // sources may be shared
  post.source = bytes ? source_.data() + source_used_ : nullptr;
  post.local_key = source_keys_.local;
  Expected& e = expected_[tag];
  e.offset = target_used_;
  e.bytes.assign(source_.data() + source_used_, source_.data() + source_used_ + bytes);
  source_used_ += bytes;
  target_used_ += (bytes + kGuard + kLineBytes - 1) / kLineBytes * kLineBytes;
  EXPECT_LE(target_used_, target_.size()) << "the test sends more than its memory holds";
  std::byte* to = target_.data() + e.offset;
  if (places()) {
    post.immediate = tag;
    post.remote_address = reinterpret_cast<uint64_t>(to);
    post.remote_key = target_keys_.remote;
  } else {
    post.header_bytes = kHeaderBytes;
    fill(post.header.data(), kDataMark, tag, kHeaderBytes);
    if (!to_nowhere) sink_[1].destinations[tag] = to;
  }
  return post;
}

ControlPost Contract::control(const Link& link, int side, PathIndex path, uint16_t bytes) {
  ControlPost post;
  post.link = link.id[side];
  post.path = path;
  post.bytes = bytes;
  fill(post.data.data(), kControlMark, next_tag_++, bytes);
  return post;
}

void Contract::post_all(std::span<const SegmentPost> posts) {
  size_t done = 0;
  EXPECT_TRUE(until([&] {
    const size_t taken = fabric(0).post(world_->now(), posts.subspan(done));
    EXPECT_LE(taken, posts.size() - done);
    return (done += taken) >= posts.size();
  })) << "the fabric took "
      << done << " of " << posts.size() << " posts and then no more";
}

void Contract::post_all_control(int side, std::span<const ControlPost> posts) {
  size_t done = 0;
  EXPECT_TRUE(until([&] {
    const size_t taken = fabric(side).post_control(world_->now(), posts.subspan(done));
    EXPECT_LE(taken, posts.size() - done);
    return (done += taken) >= posts.size();
  })) << "the fabric took "
      << done << " of " << posts.size() << " control posts and then no more";
}

void Contract::poll_both() {
  for (int side : {0, 1}) {
    const size_t before = sink_[side].total;
    const size_t delivered = fabric(side).poll(world_->now(), kPollBudget, sink_[side]);
    EXPECT_LE(delivered, kPollBudget);
    EXPECT_EQ(sink_[side].total - before, delivered) << "poll miscounts what it delivers";
  }
}

bool Contract::arrived(std::span<const SegmentPost> posts) {
  for (const SegmentPost& p : posts) {
    if (!sink_[1].data.count(tag_of(p))) return false;
  }
  return true;
}

void Contract::expect_memory_of_tags(const std::set<uint32_t>& tags) {
  std::vector<std::byte> expected(kMemoryBytes, kUntouched);
  for (uint32_t tag : tags) {
    const Expected& e = expected_.at(tag);
    std::copy(e.bytes.begin(), e.bytes.end(), expected.begin() + static_cast<ptrdiff_t>(e.offset));
  }
  const auto at = std::mismatch(expected.begin(), expected.end(), target_.begin());
  EXPECT_TRUE(at.first == expected.end())
      << "the receiver's memory is wrong at byte " << at.first - expected.begin();
}

void Contract::expect_memory(std::span<const SegmentPost> posts) {
  std::set<uint32_t> tags;
  for (const SegmentPost& p : posts) tags.insert(tag_of(p));
  expect_memory_of_tags(tags);
}

std::string kind_name(const ::testing::TestParamInfo<WorldKind>& info) { return info.param.name; }

}  // namespace weft::contract
