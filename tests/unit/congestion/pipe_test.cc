// SPDX-License-Identifier: Apache-2.0
// What a pipe learns from samples and deliveries, and what it must not be fooled by.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "multipath/congestion/pipe.h"
#include "transport/base/random.h"

namespace weft {
namespace {

constexpr Time kStart{1000000};

// Bytes arrive at a steady pace for so long, in packets of a ten-thousandth of a second's.
Time deliver(Pipe& pipe, Time now, double bytes_per_second, Duration length) {
  const Time end = now + length;
  const Duration step = microseconds(100);
  for (; now < end; now = now + step)
    pipe.on_delivered(now, static_cast<uint64_t>(bytes_per_second * step.seconds()));
  return now;
}

// RTT samples of `base` and up to `jitter` more, over some intervals. Seed 3.
void sample(Pipe& pipe, Duration base, Duration jitter, bool upper_bound) {
  Random random(3);
  Time now = kStart;
  for (int i = 0; i < 20000; ++i, now = now + microseconds(10)) {
    const auto more = static_cast<int64_t>(random.below(static_cast<uint64_t>(jitter.ns + 1)));
    pipe.on_sample(now, base + nanoseconds(more), upper_bound, false);
    pipe.on_delivered(now, 1000);
  }
}

TEST(Pipe, KnowsNothingBeforeItsFirstSample) {
  Pipe pipe({});
  EXPECT_FALSE(pipe.known());
  pipe.on_delivered(kStart, 1000);
  EXPECT_FALSE(pipe.known());
  pipe.on_sample(kStart, microseconds(40), false, false);
  EXPECT_TRUE(pipe.known());
}

// Pings, or a collective now and then, say nothing of how fast the network is.
TEST(Pipe, WhoHasNothingToSendDoesNotLearnASlowNetwork) {
  PipeConfig config;
  config.port_bytes_per_second = 12.5e9;
  Pipe pipe(config);
  Time now = kStart;
  pipe.on_sample(now, microseconds(12), false, false);
  for (int i = 0; i < 1000; ++i, now = now + milliseconds(1)) pipe.on_delivered(now, 64, false);
  EXPECT_EQ(pipe.bytes_per_second(), 12.5e9);
  for (int i = 0; i < 1000; ++i, now = now + milliseconds(1)) pipe.on_delivered(now, 1'000'000);
  EXPECT_NEAR(pipe.bytes_per_second(), 1e9, 1e8) << "held back at 1 GB/s";
  for (int i = 0; i < 1000; ++i, now = now + milliseconds(1)) pipe.on_delivered(now, 64, false);
  EXPECT_NEAR(pipe.bytes_per_second(), 1e9, 1e8) << "what was learnt stays";
  for (int i = 0; i < 10; ++i, now = now + milliseconds(1))
    pipe.on_delivered(now, 3'000'000, false);
  EXPECT_NEAR(pipe.bytes_per_second(), 3e9, 4e8) << "faster is faster whoever says it";
}

TEST(Pipe, TheBaseRttIsTheLeastThatWasSeen) {
  Pipe pipe({});
  Random random(9);
  Duration least = seconds(1);
  for (int i = 0; i < 1000; ++i) {
    const Duration rtt = microseconds(static_cast<int64_t>(20 + random.below(500)));
    least = std::min(least, rtt);
    pipe.on_sample(kStart + milliseconds(i), rtt, i % 3 == 0, false);
    ASSERT_EQ(pipe.base_rtt(), least) << "sample " << i << ", seed 9";
  }
  EXPECT_EQ(pipe.queue_delay(least + microseconds(7)), microseconds(7));
  EXPECT_EQ(pipe.queue_delay(least - microseconds(1)), Duration{0});
}

// A way that became longer: only at the least window is what comes late the network's own.
TEST(Pipe, TheBaseRttRisesWhenEvenTheLeastWindowIsAnsweredLate) {
  Pipe pipe({});
  pipe.on_sample(kStart, microseconds(50), false, false);
  Time now = kStart;
  for (; now - kStart < seconds(60); now = now + milliseconds(1))
    pipe.on_sample(now, microseconds(80), false, false);
  EXPECT_EQ(pipe.base_rtt(), microseconds(50)) << "a queue of our own";
  for (int i = 0; i < 900; ++i, now = now + milliseconds(1))
    pipe.on_sample(now, microseconds(80), false, true);
  EXPECT_EQ(pipe.base_rtt(), microseconds(50)) << "not long enough";
  pipe.on_sample(now, microseconds(80), false, false);
  for (int i = 0; i < 1200; ++i, now = now + milliseconds(1))
    pipe.on_sample(now, microseconds(i == 7 ? 70 : 80), false, true);
  EXPECT_EQ(pipe.base_rtt(), microseconds(70));
  pipe.on_sample(now, microseconds(60), true, false);
  EXPECT_EQ(pipe.base_rtt(), microseconds(60)) << "falls at once";
}

TEST(Pipe, TheFirstBaseRttIsNoLongerThanTheFabricsNetworks) {
  PipeConfig config;
  config.longest_base = microseconds(200);
  Pipe pipe(config);
  pipe.on_sample(kStart, milliseconds(3), false, false);
  EXPECT_EQ(pipe.base_rtt(), microseconds(200));
}

TEST(Pipe, NoiseStaysWithinItsBounds) {
  PipeConfig config;
  config.noise_floor = microseconds(25);
  config.noise_ceiling = microseconds(250);
  for (const auto& [jitter, least, most] :
       {std::array<int64_t, 3>{0, 25, 25}, {10, 25, 25}, {400, 80, 125}, {20000, 250, 250}}) {
    SCOPED_TRACE(testing::Message() << "jitter of " << jitter << " us, seed 3");
    Pipe pipe(config);
    EXPECT_EQ(pipe.noise(), microseconds(25));
    sample(pipe, microseconds(100), microseconds(jitter), false);
    EXPECT_GE(pipe.noise(), microseconds(least));
    EXPECT_LE(pipe.noise(), microseconds(most));
    // What is noise is no mark, and no law aims below it.
    EXPECT_GE(pipe.mark_delay(), pipe.noise() * 2);
    EXPECT_GE(pipe.target_delay(), pipe.mark_delay());
    EXPECT_GE(pipe.target_delay(), pipe.base_rtt());
  }
}

TEST(Pipe, UpperBoundsAddNoNoise) {
  PipeConfig config;
  config.noise_floor = microseconds(5);
  Pipe told(config);
  sample(told, microseconds(100), milliseconds(2), false);
  EXPECT_GT(told.noise(), microseconds(100)) << "the same samples, if they are the network's";
  Pipe pipe(config);
  sample(pipe, microseconds(100), milliseconds(2), true);
  EXPECT_EQ(pipe.noise(), microseconds(5));
}

TEST(Pipe, AQueueThatBuildsUpSlowlyIsNoNoise) {
  PipeConfig config;
  Pipe pipe(config);
  Time now = kStart;
  for (int i = 0; i < 10000; ++i, now = now + microseconds(10)) {
    pipe.on_sample(now, microseconds(50) + nanoseconds(100) * i, false, false);  // to a millisecond
    pipe.on_delivered(now, 1000);
  }
  EXPECT_LT(pipe.noise(), microseconds(2));
}

TEST(Pipe, OnAQuietFabricAShortQueueIsAMark) {
  Pipe pipe({});
  sample(pipe, microseconds(12), Duration{0}, false);
  EXPECT_LT(pipe.mark_delay(), microseconds(12) / 2);
  EXPECT_GT(pipe.mark_delay(), microseconds(1));
  EXPECT_EQ(pipe.target_delay(), microseconds(12));
}

TEST(Pipe, TheRateIsWhatIsDelivered) {
  for (double claim : {0.0, 1.25e9, 50e9}) {
    SCOPED_TRACE(testing::Message() << "port claims " << claim);
    PipeConfig config;
    config.port_bytes_per_second = claim;
    Pipe pipe(config);
    if (claim > 0) {
      EXPECT_EQ(pipe.bytes_per_second(), claim) << "the first guess";
    }
    EXPECT_GT(pipe.bytes_per_second(), 0);
    pipe.on_sample(kStart, microseconds(100), false, false);
    const Time now = deliver(pipe, kStart, 25e6, milliseconds(200));
    EXPECT_NEAR(pipe.bytes_per_second(), 25e6, 2.5e6);
    EXPECT_NEAR(static_cast<double>(pipe.capacity()), 25e6 * 100e-6, 250);
    deliver(pipe, now, 500e6, milliseconds(200));
    EXPECT_NEAR(pipe.bytes_per_second(), 500e6, 50e6);
  }
}

TEST(Pipe, TheRateNeverExceedsWhatThePortClaims) {
  PipeConfig config;
  config.port_bytes_per_second = 1.25e9;
  Pipe pipe(config);
  pipe.on_sample(kStart, microseconds(100), false, false);
  Time now = kStart;
  for (int i = 0; i < 100; ++i) {
    now = deliver(pipe, now, 5e9, milliseconds(5));  // acks that came in a heap
    ASSERT_LE(pipe.bytes_per_second(), 1.25e9);
  }
  EXPECT_EQ(pipe.bytes_per_second(), 1.25e9);
}

TEST(Pipe, APauseOfTheApplicationDoesNotLowerTheRateAtOnce) {
  PipeConfig config;
  config.port_bytes_per_second = 12.5e9;
  Pipe pipe(config);
  pipe.on_sample(kStart, microseconds(100), false, false);
  Time now = deliver(pipe, kStart, 1e9, milliseconds(200));
  const double before = pipe.bytes_per_second();
  EXPECT_NEAR(before, 1e9, 1e8);
  // A second of nothing, then a little; three times.
  for (int pause = 0; pause < 3; ++pause) {
    now = deliver(pipe, now + seconds(1), 1e7, milliseconds(5));
    EXPECT_NEAR(pipe.bytes_per_second(), before, before / 10) << "pause " << pause;
  }
  // A network that has become slower is believed in the end.
  deliver(pipe, now, 1e7, milliseconds(200));
  EXPECT_LT(pipe.bytes_per_second(), 2e7);
}

}  // namespace
}  // namespace weft
