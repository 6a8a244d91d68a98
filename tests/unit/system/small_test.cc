// SPDX-License-Identifier: Apache-2.0
//
// Clock, random bytes, file descriptors.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "transport/system/clock.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/random.h"

namespace weft {
namespace {

bool open_in_kernel(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Clock, NeverGoesBackAndMoves) {
  const Time start = monotonic_now();
  Time last = start;
  for (int i = 0; i < 100000; ++i) {
    const Time now = monotonic_now();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(last, start);
  EXPECT_GT(start.ns, 0);
}

TEST(Random, FillsEveryByte) {
  // More than one getrandom call is sure to return whole (256 bytes). Over 16 fills each byte is
  // zero every time with a chance of 256^-16: this cannot fail by luck.
  std::vector<std::byte> seen(5000), bytes(5000);
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(fill_random(bytes).ok());
    for (std::size_t b = 0; b < bytes.size(); ++b) seen[b] |= bytes[b];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), std::byte{0}), 0);
  EXPECT_TRUE(fill_random({}).ok());
}

TEST(Random, SeedsDiffer) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 100; ++i) {
    const Result<uint64_t> seed = random_u64();
    ASSERT_TRUE(seed.ok()) << seed.status().words();
    seeds.insert(*seed);
  }
  EXPECT_EQ(seeds.size(), 100u);
}

TEST(FileDescriptor, ClosesOnceAndWhenReplaced) {
  const int first = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int second = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(first, 0);
  ASSERT_GE(second, 0);
  {
    FileDescriptor owner(first);
    EXPECT_TRUE(owner);
    owner.reset(second);
    EXPECT_FALSE(open_in_kernel(first));
    FileDescriptor other = std::move(owner);
    EXPECT_FALSE(owner.valid());  // NOLINT: that is the point
    EXPECT_EQ(other.get(), second);
    EXPECT_TRUE(open_in_kernel(second));
  }
  EXPECT_FALSE(open_in_kernel(second));
}

TEST(FileDescriptor, ReleaseGivesItUp) {
  FileDescriptor owner(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(owner.valid());
  const int fd = owner.release();
  EXPECT_EQ(owner.get(), -1);
  owner.reset();
  EXPECT_TRUE(open_in_kernel(fd));
  FileDescriptor again(fd);
}

}  // namespace
}  // namespace weft
