// SPDX-License-Identifier: Apache-2.0
// The fixture of the contract suite: two hosts, a peer's memory with guards around everything, and
// one way to send that suits datagram and placing fabrics alike.
//
// Each segment carries a tag: in the first bytes of its header on datagram fabrics, in the
// immediate data on placing ones. segment() gives each payload a place, and expect_memory()
// compares all of the target buffer with what it should be, guards included, so a stray write
// anywhere in it is seen.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/fabric/world.h"

namespace weft::contract {

inline constexpr std::byte kDataMark{0xda};
inline constexpr std::byte kControlMark{0xc0};
inline constexpr uint16_t kHeaderBytes = 64;
inline constexpr size_t kControlFixed = 5;  // mark, tag

// One host's sink. It answers by the table, and remembers.
class RecordingSink final : public FabricSink {
 public:
  std::map<uint32_t, std::byte*> destinations;  // by tag; what is not here goes nowhere
  std::map<uint32_t, int> data;                 // arrivals by tag
  std::map<uint32_t, int> control;
  std::map<uint32_t, uint32_t> bytes;  // of payload, by tag
  std::map<uint32_t, std::vector<Landing>> landings;
  std::map<uint64_t, int> completions;  // by cookie
  std::vector<PathChange> changes;
  size_t unknown = 0;  // datagrams that the suite never sent
  size_t total = 0;    // of all kinds
  bool broken_header = false;

  void receive(std::span<Datagram> batch) override;
  void arrived(std::span<const Datagram> batch) override;
  void landed(std::span<const Landing> batch) override;
  void completed(std::span<const Completion> batch) override;
  void path_changed(std::span<const PathChange> batch) override;

 private:
  uint64_t cookies_ = 0;
  uint64_t cookies_seen_ = 0;
};

class Contract : public ::testing::TestWithParam<WorldKind> {
 protected:
  static constexpr size_t kGuard = 256;
  static constexpr size_t kMemoryBytes = 4u << 20;

  struct Link {
    LinkId id[2];  // as each side calls it
    LinkAddress address[2];
  };

  Contract();
  void SetUp() override;
  void TearDown() override;

  Fabric& fabric(int side) { return world_->fabric(side); }
  bool places() { return fabric(0).offloads().places; }
  Link connect();

  // A segment from side 0 to side 1 with a source of its own. It is expected at a place of its own,
  // with guards on both sides, unless to_nowhere.
  SegmentPost segment(const Link& link, PathIndex path, uint32_t bytes, bool to_nowhere = false);
  ControlPost control(const Link& link, int side, PathIndex path, uint16_t bytes);

  // Posts all of it from side 0, with polls in between where the fabric takes a prefix.
  void post_all(std::span<const SegmentPost> posts);
  void post_all_control(int side, std::span<const ControlPost> posts);

  // Polls both sides and lets time pass until the condition holds; false if it never does.
  template <class Condition>
  bool until(Condition condition) {
    for (int round = 0; round < kRounds; ++round) {
      if (condition()) return true;
      poll_both();
      world_->pass_time();
    }
    return condition();
  }
  // For what should not happen: gives it time to.
  void settle() {
    for (int round = 0; round < 30; ++round) {
      poll_both();
      world_->pass_time();
    }
  }
  void poll_both();
  bool arrived(std::span<const SegmentPost> posts);
  static uint32_t tag_of(const SegmentPost& post) { return static_cast<uint32_t>(post.cookie); }

  // The target buffer is as it should be when the payload of exactly these tags has arrived.
  void expect_memory_of_tags(const std::set<uint32_t>& tags);
  void expect_memory(std::span<const SegmentPost> posts);

  uint64_t seed_;
  Random random_;
  std::unique_ptr<World> world_;
  RecordingSink sink_[2];
  std::vector<std::byte> source_, target_;
  MemoryKeys source_keys_, target_keys_;

 private:
  static constexpr int kRounds = 20000;

  struct Expected {
    size_t offset = 0;
    std::vector<std::byte> bytes;
  };
  std::map<uint32_t, Expected> expected_;
  uint32_t next_tag_ = 1;
  size_t source_used_ = 0;
  size_t target_used_ = kGuard;
};

std::string kind_name(const ::testing::TestParamInfo<WorldKind>& info);

// A suite of its own over every fabric, or over those of some kinds.
#define WEFT_CONTRACT_SUITE(Name) WEFT_CONTRACT_SUITE_FOR(Name, kinds())
#define WEFT_CONTRACT_SUITE_FOR(Name, Kinds) \
  class Name : public Contract {};           \
  INSTANTIATE_TEST_SUITE_P(Fabric, Name, ::testing::ValuesIn(Kinds), kind_name)

}  // namespace weft::contract
