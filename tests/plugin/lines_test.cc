// SPDX-License-Identifier: Apache-2.0
// NCCL's LL and LL128 protocols over many paths: while a message arrives, a thread in the GPU's
// place polls the flags inside it. No line is ever seen torn, and none falls back to what it was
// before, in buffers that are used again and again, without loss and with it.
//
// LL: words of eight bytes, data and flag. LL128: lines of 128 bytes whose last word is the flag. A
// flag is the step that wrote it, and the data beside it follow from step and place.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "plugin/hints.h"
#include "tests/plugin/own_network.h"
#include "tests/plugin/peer.h"

namespace weft::plugin_test {
namespace {

constexpr size_t kSlots = 4;

struct Protocol {
  uint32_t mask;  // for setNetAttr
  size_t bytes;   // of a message
  size_t words;   // of eight bytes that one flag vouches for, itself included
  uint64_t word(uint64_t step, size_t at) const {
    const uint64_t data = (step * 0x9e3779b97f4a7c15 ^ at * 0xbf58476d1ce4e5b9) >> 32;
    if (words == 1) return step << 32 | data;
    return at % words == words - 1 ? step : data << 32 | data;
  }
  // The step whose flag this word holds.
  uint64_t flag(uint64_t word) const { return words == 1 ? word >> 32 : word; }
  size_t all_words() const { return bytes / 8; }
};
constexpr Protocol kLL{nccl::kProtocolLL, 32 << 10, 1};
constexpr Protocol kLL128{nccl::kProtocolLL128, 256 << 10, 16};

uint64_t* words_of(Buffer& buffer, uint64_t step, const Protocol& protocol) {
  return reinterpret_cast<uint64_t*>(buffer.data() + step % kSlots * protocol.bytes);
}
uint64_t load(uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }

// The GPU: reads step after step as the lines come in.
class Poller {
 public:
  Poller(const Protocol& protocol, Buffer& buffer, uint64_t steps)
      : protocol_(protocol), buffer_(buffer), thread_([this, steps] {
          for (uint64_t s = 1; s <= steps && read(s); ++s) consumed_ = s;
        }) {}
  ~Poller() { thread_.join(); }
  uint64_t consumed() const { return consumed_; }
  std::string wrong() const { return failed_ ? wrong_ : ""; }

 private:
  bool blame(const char* what, uint64_t step, size_t at, uint64_t seen) {
    std::ostringstream out;
    out << what << " in step " << step << " at word " << at << ": " << std::hex << seen;
    wrong_ = out.str();
    failed_ = true;
    return false;
  }
  bool read(uint64_t step) {
    uint64_t* const words = words_of(buffer_, step, protocol_);
    const uint64_t before = step > kSlots ? step - kSlots : 0;
    for (size_t flag = protocol_.words - 1; flag < protocol_.all_words(); flag += protocol_.words) {
      if (!await(words[flag], step, before, flag)) return false;
      for (size_t at = flag + 1 - protocol_.words; at < flag; ++at) {
        if (load(words[at]) != protocol_.word(step, at)) {
          return blame("a torn line", step, at, load(words[at]));
        }
      }
    }
    return true;
  }
  bool await(uint64_t& word, uint64_t step, uint64_t before, size_t at) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (uint32_t polls = 1;; ++polls) {
      const uint64_t seen = load(word);
      if (seen == protocol_.word(step, at)) return true;
      if (seen != (before == 0 ? 0 : protocol_.word(before, at))) {
        return blame("neither the old nor the new", step, at, seen);
      }
      if (polls % 1024 != 0) continue;
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > limit) return blame("nothing", step, at, seen);
    }
  }

  const Protocol& protocol_;
  Buffer& buffer_;
  std::atomic<uint64_t> consumed_{0};
  std::string wrong_;
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

// What the last step left there stays until the next one comes.
void expect_as_left(Buffer& to, uint64_t step, const Protocol& protocol) {
  uint64_t* const words = words_of(to, step, protocol);
  for (size_t at = 0; at < protocol.all_words(); ++at) {
    ASSERT_EQ(load(words[at]), protocol.word(step, at))
        << "stale data in step " << step << " at " << at;
  }
}

void run_steps(const Protocol& protocol, uint64_t steps) {
  Context context;
  nccl::NetAttrV11 attributes{};
  attributes.op = 0x10;
  attributes.proto = protocol.mask;
  ASSERT_EQ(set_attributes(context, attributes), nccl::kSuccess);
  Pair pair(context, context);
  ASSERT_TRUE(pair.up());
  Buffer from(kSlots * protocol.bytes), to(kSlots * protocol.bytes);
  to.set(0);
  Registered source(pair.send(), from), sink(pair.receive(), to);
  std::array<void*, kSlots> sends{}, receives{};
  Poller poller(protocol, to, steps);
  for (uint64_t step = 1; step <= steps + kSlots; ++step) {
    const size_t slot = step % kSlots, at = slot * protocol.bytes;
    if (step > kSlots) {
      const uint64_t last = step - kSlots;
      ASSERT_TRUE(
          eventually([&] { return poller.consumed() >= last || !poller.wrong().empty(); }, 90000));
      ASSERT_EQ(poller.wrong(), "");
      ASSERT_EQ(wait(receives[slot]), nccl::kSuccess) << take_log();
      ASSERT_EQ(wait(sends[slot]), nccl::kSuccess) << take_log();
      ASSERT_NO_FATAL_FAILURE(expect_as_left(to, last, protocol));
    }
    if (step > steps) continue;
    uint64_t* const words = words_of(from, step, protocol);
    for (size_t w = 0; w < protocol.all_words(); ++w) words[w] = protocol.word(step, w);
    receives[slot] = post_receive(pair.receive(), to.data() + at, protocol.bytes, 0, sink.get());
    sends[slot] = post_send(pair.send(), from.data() + at, protocol.bytes, 0, source.get());
  }
}

// Small packets and a small window, so that every message is many bursts, each on the next path.
void spread_thin(const std::string& statistics) {
  ::setenv("WEFT_SEGMENT", "1408", 1);
  ::setenv("WEFT_WINDOW_KB", "64", 1);
  ::setenv("WEFT_PATHS", "32", 1);
  ::setenv("WEFT_SELECTOR", "oblivious", 1);
  ::setenv("WEFT_STATS", statistics.c_str(), 1);
}

// How often `words` stands in the file.
int count_in(const std::string& path, const std::string& words) {
  std::ifstream in(path);
  const std::string all(std::istreambuf_iterator<char>(in), {});
  int count = 0;
  for (size_t at = all.find(words); at != std::string::npos; at = all.find(words, at + 1)) ++count;
  return count;
}

// A role: all of it over loopback, in a network of its own that loses `percent` of the packets.
void steps_with_loss(int fd, int percent, uint64_t steps) {
  if (percent > 0 && !(own_network() && lose_udp(percent))) {
    say(fd, 'n');
    return;
  }
  const std::string statistics =
      testing::TempDir() + "lines-" + std::to_string(::getpid()) + ".json";
  spread_thin(statistics);
  run_steps(kLL, steps);
  if (!testing::Test::HasFailure()) run_steps(kLL128, steps / 4);
  unload();
  EXPECT_GE(count_in(statistics, "\"bytes\":"), 32);
  EXPECT_EQ(count_in(statistics, "\"bytes\":0,"), 0) << "a path that was not used";
  if (percent > 0) {
    EXPECT_EQ(count_in(statistics, "],\"retransmitted\":0,"), 0) << "nothing was lost";
  }
  ::unlink(statistics.c_str());
  say(fd, 'g');
}

void expect_whole_lines(const char* role) {
  Peer peer(role);
  const char word = hear(peer.fd());
  if (word == 'n') GTEST_SKIP() << "needs root, network namespaces and nftables";
  peer.expect_good_end();
}

TEST(PluginLines, AreNeverSeenTornOrStaleOverManyPaths) { expect_whole_lines("clean"); }
TEST(PluginLines, AreNeverSeenTornOrStaleWhenPacketsAreLost) { expect_whole_lines("lossy"); }

TEST(PluginHints, OnlyMessagesOfPolledProtocolsAreLatencyBound) {
  plugin::NetAttributes said;
  for (const auto& [mask, bound] : {std::pair{1u, true},
                                    {2u, true},
                                    {3u, true},
                                    {4u, false},
                                    {5u, false},
                                    {7u, false},
                                    {0u, false},
                                    {~0u, false}}) {
    said.protocols = mask;
    EXPECT_EQ(plugin::hints_of(said).latency_bound, bound) << mask;
  }
}

TEST(PluginHints, WhatMakesNoSenseIsTakenForNothingSaid) {
  plugin::NetAttributes said;
  said.operations = ~0u;
  said.send.max_peers = -3;
  said.send.max_flows_per_peer = -1;
  EXPECT_EQ(plugin::hints_of(said), TrafficHints{});
  said.operations = 0x40;
  said.send.max_peers = 1 << 20;
  said.send.max_flows_per_peer = 1000;
  const TrafficHints hints = plugin::hints_of(said);
  EXPECT_EQ(hints.operations, 0x40u);
  EXPECT_EQ(hints.peers, 65535);
  EXPECT_EQ(hints.flows_per_peer, 255);
}

}  // namespace

const std::map<std::string, Role> kRoles = {
    {"clean", [](int fd) { steps_with_loss(fd, 0, 4000); }},
    {"lossy", [](int fd) { steps_with_loss(fd, 3, 1000); }},
};

}  // namespace weft::plugin_test
