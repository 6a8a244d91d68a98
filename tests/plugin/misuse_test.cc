// SPDX-License-Identifier: Apache-2.0
// What NCCL's threads do across each other while data moves: memory registered over memory in use,
// attributes that never stay the same. The data is right, and nobody is disturbed.
//
// Streams go on until whoever disturbs them has had his turns, for a bounded number of messages.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <random>
#include <thread>

#include "tests/plugin/net.h"

namespace weft::plugin_test {
namespace {

constexpr size_t kSlot = 20'000;
constexpr int kDepth = 6;
constexpr size_t kStreamed = kDepth * kSlot;
constexpr size_t kMargin = 4099;  // on either side of what is streamed
constexpr int kMessages = 600;
constexpr int kMostMessages = 20 * kMessages;
constexpr int kEnoughTurns = 200;

// Both ends of a Pair's memory, and messages of random sizes through the middle of it.
class Stream {
 public:
  explicit Stream(Pair& pair, uint32_t seed)
      : pair_(pair),
        seed_(seed),
        random_(seed),
        from_(kMargin + kStreamed + kMargin),
        to_(kMargin + kStreamed + kMargin) {}

  Buffer& from() { return from_; }
  Buffer& to() { return to_; }

  // At least kMessages, and more until there were `enough`; every byte checked.
  void run(const std::atomic<int>& turns, int enough) {
    source_ = registered(pair_.send(), from_);
    sink_ = registered(pair_.receive(), to_);
    int posted = 0;
    for (int i = 0; i < posted || more(i, turns.load(), enough); ++i) {
      while (posted < i + kDepth && more(posted, turns.load(), enough)) {
        ASSERT_NO_FATAL_FAILURE(post(posted++));
      }
      ASSERT_NO_FATAL_FAILURE(finish(i)) << "message " << i << ", seed " << seed_;
    }
    EXPECT_GE(turns.load(), enough) << "too few turns in " << posted << " messages, seed " << seed_;
    EXPECT_EQ(net().dereg_mr(pair_.send(), source_), nccl::kSuccess);
    EXPECT_EQ(net().dereg_mr(pair_.receive(), sink_), nccl::kSuccess);
  }

 private:
  struct Slot {
    void* receive = nullptr;
    void* send = nullptr;
    size_t bytes = 0;
  };

  static bool more(int posted, int turns, int enough) {
    return posted < kMessages || (turns < enough && posted < kMostMessages);
  }
  static void* registered(void* comm, Buffer& buffer) {
    void* mhandle = nullptr;
    EXPECT_EQ(net().reg_mr(comm, buffer.data() + kMargin, kStreamed, nccl::kPtrHost, &mhandle),
              nccl::kSuccess)
        << take_log();
    return mhandle;
  }
  static size_t place(int i) { return kMargin + static_cast<size_t>(i % kDepth) * kSlot; }
  uint64_t message(int i) const { return uint64_t{seed_} * 100'000 + static_cast<uint64_t>(i); }

  void post(int i) {
    Slot& slot = slots_[static_cast<size_t>(i % kDepth)];
    slot.bytes = random_() % 4 == 0 ? random_() % 64 : random_() % (kSlot + 1);
    from_.fill(message(i), place(i), slot.bytes);
    slot.receive = post_receive(pair_.receive(), to_.data() + place(i), kSlot, 3, sink_);
    slot.send = post_send(pair_.send(), from_.data() + place(i), slot.bytes, 3, source_);
    ASSERT_TRUE(slot.receive != nullptr && slot.send != nullptr);
  }
  void finish(int i) {
    const Slot& slot = slots_[static_cast<size_t>(i % kDepth)];
    int size = -1;
    ASSERT_EQ(wait(slot.receive, &size), nccl::kSuccess) << take_log();
    ASSERT_EQ(static_cast<size_t>(size), slot.bytes);
    ASSERT_EQ(to_.matches(message(i), place(i), slot.bytes), slot.bytes);
    ASSERT_EQ(wait(slot.send), nccl::kSuccess) << take_log();
  }

  Pair& pair_;
  const uint32_t seed_;
  std::mt19937 random_;
  Buffer from_, to_;
  void* source_ = nullptr;
  void* sink_ = nullptr;
  std::array<Slot, kDepth> slots_;
};

struct Range {
  size_t at;
  size_t bytes;
};
using Choose = Range (*)(std::mt19937&);
Range the_same(std::mt19937&) { return {kMargin, kStreamed}; }

// Inside what is streamed, around it, or over one of its edges; never at an even offset.
Range overlapping(std::mt19937& random) {
  const size_t left = random() % (kMargin / 2) * 2 + 1, right = random() % kMargin;
  const size_t inside = random() % (kStreamed / 2) * 2;
  switch (random() % 4) {
    case 0: return {kMargin + inside, 1 + random() % (kStreamed - inside)};
    case 1: return {left, kMargin - left + kStreamed + right};
    case 2: return {left, kMargin - left + 1 + inside};
    default: return {kMargin + inside, kStreamed - inside + right};
  }
}

Range any(std::mt19937& random) {
  return random() % 3 == 0 ? the_same(random) : overlapping(random);
}

// One thread streams; another registers and drops ranges of both comms, at most `live` at once.
void stream_beside_registrations(Choose choose, size_t live, uint32_t seed) {
  Context context;
  Pair pair(context, context);
  ASSERT_TRUE(pair.up());
  Stream stream(pair, seed);
  std::atomic<bool> over{false};
  std::atomic<int> turns{0};
  std::thread service([&] {
    std::mt19937 random(seed + 1);
    struct Live {
      void* comm;
      void* mhandle;
    };
    std::vector<Live> held;
    const auto drop = [&](size_t which) {
      EXPECT_EQ(net().dereg_mr(held[which].comm, held[which].mhandle), nccl::kSuccess);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    };
    while (!over.load()) {
      for (const bool send : {true, false}) {
        const Range range = choose(random);
        Live made{send ? pair.send() : pair.receive(), nullptr};
        std::byte* memory = (send ? stream.from() : stream.to()).data();
        EXPECT_EQ(
            net().reg_mr(made.comm, memory + range.at, range.bytes, nccl::kPtrHost, &made.mhandle),
            nccl::kSuccess)
            << range.bytes << " bytes at " << range.at << ", seed " << seed << take_log();
        if (made.mhandle == nullptr) return;
        held.push_back(made);
      }
      while (held.size() > live || (!held.empty() && random() % 2 == 0))
        drop(random() % held.size());
      ++turns;
    }
    while (!held.empty()) drop(random() % held.size());
  });
  stream.run(turns, kEnoughTurns);
  over = true;
  service.join();
}

TEST(PluginMisuse, RegisteringTheRangeInUseAgainAndDroppingItDisturbsNoMessage) {
  stream_beside_registrations(the_same, 0, 101);
}

TEST(PluginMisuse, RegistrationsThatOverlapTheRangeInUseComeAndGo) {
  stream_beside_registrations(overlapping, 0, 202);
}

TEST(PluginMisuse, ManyRegistrationsOfOneRangeAreDroppedInAnyOrder) {
  stream_beside_registrations(any, 24, 303);
}

// The younger message is the shorter one and overtakes: what it used belongs to nobody any more.
TEST(PluginMisuse, MemoryOfAFinishedMessageMayGoWhileAnOlderOneIsUnderWay) {
  constexpr size_t kLong = 16 << 20, kShort = 60;
  Context context;
  Pair pair(context, context);
  ASSERT_TRUE(pair.up());
  Buffer from(kLong), to(kLong);
  Registered source(pair.send(), from), sink(pair.receive(), to);
  from.fill(1);
  int overtaken = 0;
  for (int round = 0; round < 20 && overtaken < 2; ++round) {
    SCOPED_TRACE(round);
    to.set(0);
    Buffer short_from(kShort), short_to(kShort);
    Registered short_source(pair.send(), short_from), short_sink(pair.receive(), short_to);
    short_from.fill(2);
    void* older = post_receive(pair.receive(), to.data(), kLong, 0, sink.get());
    void* younger = post_receive(pair.receive(), short_to.data(), kShort, 0, short_sink.get());
    void* long_send = post_send(pair.send(), from.data(), kLong, 0, source.get());
    void* short_send = post_send(pair.send(), short_from.data(), kShort, 0, short_source.get());
    ASSERT_EQ(wait(younger), nccl::kSuccess) << take_log();
    ASSERT_EQ(wait(short_send), nccl::kSuccess) << take_log();
    EXPECT_EQ(short_to.matches(2, 0, kShort), kShort);
    int done = 0;
    ASSERT_EQ(net().test(older, &done, nullptr), nccl::kSuccess);
    overtaken += done == 0;
    short_source.drop();
    short_sink.drop();
    short_from.forbid();
    short_to.forbid();
    if (done == 0) {
      ASSERT_EQ(wait(older), nccl::kSuccess) << take_log();
    }
    ASSERT_EQ(wait(long_send), nccl::kSuccess) << take_log();
    EXPECT_EQ(to.matches(1, 0, kLong), kLong);
  }
  EXPECT_GT(overtaken, 0) << "no message has overtaken another";
}

int32_t some_number(std::mt19937& random) {
  constexpr std::array<int32_t, 6> kOdd = {
      0, 1, -1, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(), 70'000};
  const uint32_t drawn = static_cast<uint32_t>(random());
  return drawn % 2 == 0 ? kOdd[drawn / 2 % kOdd.size()] : static_cast<int32_t>(drawn);
}

nccl::NetAttrV11 some_attributes(std::mt19937& random) {
  nccl::NetAttrV11 said{};
  for (nccl::CommAttrV11* side : {&said.send, &said.recv}) {
    *side = {some_number(random), some_number(random), some_number(random), some_number(random)};
  }
  said.op = static_cast<uint32_t>(some_number(random));
  said.algo = static_cast<uint32_t>(some_number(random));
  said.proto = static_cast<uint32_t>(some_number(random));
  return said;
}

struct Costs {
  std::vector<int64_t> set_ns, devices_ns;  // of batches, in turns
};

void storm(const std::vector<Context*>& contexts, uint32_t seed, const std::atomic<bool>& over,
           std::atomic<int>& turns, Costs* costs) {
  constexpr size_t kBatch = 32, kMostSamples = 100'000;
  using Clock = std::chrono::steady_clock;
  const NetV11& table = net();
  std::mt19937 random(seed);
  std::array<nccl::NetAttrV11, kBatch> batch;
  int failures = 0;
  while (!over.load()) {
    void* context = contexts[random() % contexts.size()]->get();
    for (nccl::NetAttrV11& attributes : batch) attributes = some_attributes(random);
    const auto begin = Clock::now();
    for (nccl::NetAttrV11& attributes : batch) {
      failures += table.set_net_attr(context, &attributes) != nccl::kSuccess;
    }
    const auto between = Clock::now();
    for (size_t i = 0; i < kBatch; ++i) {
      int count = 0;
      failures += table.devices(&count) != nccl::kSuccess;
    }
    const auto end = Clock::now();
    if (costs->set_ns.size() < kMostSamples) {
      costs->set_ns.push_back(std::chrono::nanoseconds(between - begin).count());
      costs->devices_ns.push_back(std::chrono::nanoseconds(end - between).count());
    }
    ++turns;
  }
  EXPECT_EQ(failures, 0) << take_log();
}

int64_t median(std::vector<int64_t> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

TEST(PluginMisuse, AttributesThatNeverStayTheSameCostNextToNothingAndDisturbNoMessage) {
  WEFT_NEEDS_CONTEXTS();
  constexpr int64_t kMultiple = 20;  // of what the cheapest call takes in the same moments
  Context one, other;
  Pair there(one, other), back(other, one);
  ASSERT_TRUE(there.up() && back.up());
  std::atomic<bool> over{false};
  std::atomic<int> turns{0};
  std::array<Costs, 2> costs;
  std::vector<std::thread> storms;
  for (uint32_t t = 0; t < 2; ++t) {
    storms.emplace_back([&, t] { storm({&one, &other}, 400 + t, over, turns, &costs[t]); });
  }
  std::thread answers([&] { Stream(back, 405).run(turns, kEnoughTurns); });
  Stream(there, 404).run(turns, kEnoughTurns);
  answers.join();
  over = true;
  for (std::thread& thread : storms) thread.join();
  for (const Costs& c : costs) {
    ASSERT_FALSE(c.set_ns.empty() || c.devices_ns.empty());
    EXPECT_LE(median(c.set_ns), kMultiple * std::max<int64_t>(1, median(c.devices_ns)));
  }
}

}  // namespace
}  // namespace weft::plugin_test
