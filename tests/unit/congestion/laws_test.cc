// SPDX-License-Identifier: Apache-2.0
// What every law that moves its window owes, whatever its idea: bounds, the rate of the bottleneck,
// a fair share, one cut for the losses of one moment, and no allocation.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>

#include "multipath/congestion/law.h"
#include "tests/unit/congestion/bottleneck.h"
#include "tests/unit/congestion/feed.h"
#include "tests/unit/congestion/networks.h"
#include "transport/base/random.h"

namespace {
uint64_t allocations = 0;
}

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace weft {
namespace {

class EveryLaw : public testing::TestWithParam<const char*> {
 protected:
  bool is(std::string_view name) const { return GetParam() == name; }
};
INSTANTIATE_TEST_SUITE_P(Laws, EveryLaw,
                         testing::Values("nscc", "mnscc", "swift", "timely", "dctcp", "cubic"),
                         [](const auto& law) { return std::string(law.param); });

TEST_P(EveryLaw, HasItsName) {
  const Pipe pipe({});
  const auto law = make_law(GetParam(), {}, pipe);
  ASSERT_NE(law, nullptr);
  EXPECT_EQ(law->name(), GetParam());
}

TEST_P(EveryLaw, TheWindowIsNeverUnderTheLeastNorOverTheMost) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const auto segment = static_cast<uint32_t>(128 + random.below(65536));
    const uint64_t most = random.below(3) ? segment * 40 + random.below(8u << 20) : random.below(4);
    Pipe pipe(
        {random.chance(0.5) ? 1e9 : 0.0, microseconds(static_cast<int64_t>(random.below(30)))});
    auto law = make_law(GetParam(), {most, segment}, pipe);
    Time now{1};
    for (int step = 0; step < 4000; ++step) {
      now = now + nanoseconds(static_cast<int64_t>(random.below(1u << random.below(31))));
      const Duration rtt = nanoseconds(static_cast<int64_t>(random.below(1u << random.below(31))));
      const uint64_t bytes = random.below(segment + 1);
      const uint64_t kind = random.below(8);
      const auto path = static_cast<PathIndex>(random.below(kMaxPaths));
      if (kind < 5) {
        if (rtt.ns > 0) pipe.on_sample(now, rtt, random.chance(0.2), law->at_least());
        pipe.on_delivered(now, bytes);
        law->on_ack({now, bytes, rtt, pipe.queue_delay(rtt), random.chance(0.3), path});
      } else if (kind < 7) {
        for (uint64_t i = random.below(50); i > 0; --i) law->on_loss(now, segment);
      } else {
        law->on_timeout(now);
      }
      ASSERT_GE(law->window(), 2u * segment) << "seed " << seed << " step " << step;
      // The least is at most 16 segments, and is there even where the most is less.
      ASSERT_LE(law->window(), std::max<uint64_t>(most, 16u * segment))
          << "seed " << seed << " step " << step;
    }
  }
}

TEST_P(EveryLaw, ConvergesToTheRateOfTheBottleneck) {
  for (const Network& net : networks()) {
    SCOPED_TRACE(net.name);
    BottleneckConfig config = net.config;
    config.name = GetParam();
    Bottleneck link(config);
    link.add(false);
    link.run(net.settle);
    link.count_anew();
    link.run(net.settle);
    // Cubic cuts by 0.3 at one mark, however short the queue: RFC 9438 is made for longer ones.
    EXPECT_GT(link.utilisation(), is("cubic") ? 0.85 : 0.97);
    // The queue is of the size that is aimed at; what stood there at the start is gone.
    EXPECT_LT(link.mean_wait(0), link.flow(0).pipe->target_delay().seconds() * 2.6);
  }
}

TEST_P(EveryLaw, WhoComesLateAndKnowsTheEmptyNetworkGetsHalf) {
  for (const Network& net : networks()) {
    SCOPED_TRACE(net.name);
    BottleneckConfig config = net.config;
    config.name = GetParam();
    Bottleneck link(config);
    link.add(true);
    link.run(net.settle);
    link.add(true);
    link.run(net.settle * (is("timely") ? 12 : 3));
    link.count_anew();
    link.run(net.settle * 2);
    const double ratio =
        static_cast<double>(link.flow(1).delivered) / static_cast<double>(link.flow(0).delivered);
    EXPECT_GT(ratio, 0.8);
    EXPECT_LT(ratio, 1.25);
  }
}

// NSCC is not among these: it gives up what was lost, byte for byte.
class LawThatCuts : public EveryLaw {};
INSTANTIATE_TEST_SUITE_P(Laws, LawThatCuts, testing::Values("swift", "timely", "dctcp", "cubic"),
                         [](const auto& law) { return std::string(law.param); });

TEST_P(LawThatCuts, TheLossesOfOneRoundTripAreOneEvent) {
  Feed feed(GetParam(), milliseconds(1));
  for (int i = 0; i < 20; ++i) feed.round(microseconds(1));
  const double before = feed.window();
  ASSERT_GT(before, 400e3);
  for (int i = 0; i < 50; ++i) {
    feed.law->on_loss(feed.now, Feed::kSegment);
    feed.now = feed.now + feed.base / 50;
  }
  EXPECT_LT(feed.window(), before * 0.75) << "one is";
  EXPECT_GE(feed.window(), before * 0.49) << "one, and no more";
  const double after = feed.window();
  feed.now = feed.now + feed.base * 3;
  feed.law->on_loss(feed.now, Feed::kSegment);
  EXPECT_LT(feed.window(), after * 0.75) << "the next is another";
}

TEST_P(EveryLaw, RecoversAfterLosses) {
  for (const Network& net : networks()) {
    SCOPED_TRACE(net.name);
    BottleneckConfig config = net.config;
    config.name = GetParam();
    Bottleneck link(config);
    link.add(true);
    link.run(net.settle);
    Law& law = *link.flow(0).law;
    const uint64_t before = law.window();
    for (int i = 0; i < 8; ++i) {
      // Two thirds of the window each, in segments.
      for (uint64_t n = law.window() / config.law.segment_bytes * 2 / 3; n > 0; --n)
        law.on_loss(link.now(), config.law.segment_bytes);
      link.run(config.base_rtt * 4);
    }
    EXPECT_TRUE(law.at_least() || law.window() < before * 7 / 8) << "nothing to recover from";
    link.run(net.settle * 2);
    link.count_anew();
    link.run(net.settle);
    EXPECT_GT(link.utilisation(), is("cubic") ? 0.85 : 0.97);
  }
}

TEST_P(EveryLaw, AllocatesNothingOnTheDataPath) {
  Feed feed(GetParam());
  Random random(3);
  const uint64_t before = allocations;
  for (int i = 0; i < 3000; ++i) {
    feed.round(microseconds(static_cast<int64_t>(random.below(300))), 0.2, 1,
               static_cast<PathIndex>(random.below(kMaxPaths)));
    feed.law->on_loss(feed.now, 1);
    feed.law->on_timeout(feed.now);
  }
  EXPECT_EQ(allocations, before);
  auto counted = std::make_unique<int>(1);
  EXPECT_GT(allocations, before) << "the count counts";
}

TEST_P(EveryLaw, TheSameSeedIsTheSameRun) {
  const auto run = [](uint64_t seed, const char* name) {
    BottleneckConfig config = networks()[3].config;
    config.name = name;
    config.loss = 0.01;
    config.seed = seed;
    Bottleneck link(config);
    link.add(false);
    link.run(milliseconds(100));
    return link.flow(0).delivered * 1000003 + link.flow(0).law->window();
  };
  EXPECT_EQ(run(5, GetParam()), run(5, GetParam()));
  EXPECT_NE(run(5, GetParam()), run(6, GetParam()));
}

}  // namespace
}  // namespace weft
