// SPDX-License-Identifier: Apache-2.0
// copy_lines and HostMemory: every byte right, none beside them, at any size and alignment, and a
// line's last word after the rest, as a reader on another core sees it.
#include "transport/memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "transport/base/random.h"

namespace weft {
namespace {

constexpr std::byte kUntouched{0xa5};

TEST(CopyLines, CopiesEverySizeAtEveryAlignmentAndNothingBeside) {
  std::vector<std::byte> source(1100), target(1200);
  Random random(1);
  for (std::byte& b : source) b = static_cast<std::byte>(random.next());
  for (size_t size = 0; size <= 1000; ++size) {
    // All pairs of alignments for few sizes, a pair for each size.
    const bool all = size < 20 || size % 128 < 2 || size == 1000;
    for (size_t pair = all ? 0 : size % 256, end = all ? 256 : pair + 1; pair < end; ++pair) {
      const size_t from = pair % 16, to = 64 + pair / 16;
      std::fill(target.begin(), target.end(), kUntouched);
      copy_lines(target.data() + to, source.data() + from, size);
      ASSERT_EQ(std::memcmp(target.data() + to, source.data() + from, size), 0)
          << "size " << size << " from " << from << " to " << to;
      for (size_t i = 0; i < to; ++i) ASSERT_EQ(target[i], kUntouched) << size << " before " << i;
      for (size_t i = to + size; i < target.size(); ++i) {
        ASSERT_EQ(target[i], kUntouched) << size << " after " << i;
      }
    }
  }
}

TEST(HostMemory, PlacesABatchAndNothingForNowhere) {
  std::vector<std::byte> source(512, std::byte{1}), target(512, kUntouched);
  const Placement batch[] = {{target.data(), source.data(), 100},
                             {nullptr, source.data(), 512},
                             {target.data() + 200, source.data(), 0},
                             {target.data() + 300, source.data(), 12}};
  HostMemory memory;
  memory.place(batch, 4);
  for (size_t i = 0; i < target.size(); ++i) {
    const bool written = i < 100 || (i >= 300 && i < 312);
    ASSERT_EQ(target[i], written ? std::byte{1} : kUntouched) << i;
  }
}

// A writer copies lines of one number after another; a reader that finds a number in the last word
// of a line must find nothing older in the line. What LL128 does on a GPU, done by a core.
TEST(CopyLines, AReaderThatSeesTheLastWordSeesTheWholeLine) {
  struct alignas(128) Line {
    std::atomic<uint64_t> word[16];
  };
  constexpr size_t kLines = 64;
  constexpr uint64_t kRounds = 20000;
  std::vector<Line> target(kLines);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    std::vector<uint64_t> source(kLines * 16);
    for (uint64_t round = 1; round <= kRounds; ++round) {
      std::fill(source.begin(), source.end(), round);
      copy_lines(reinterpret_cast<std::byte*>(target.data()),
                 reinterpret_cast<const std::byte*>(source.data()), kLines * 128);
      if (round % 256 == 0 && std::chrono::steady_clock::now() > deadline) break;
      std::this_thread::yield();
    }
    done = true;
  });
  uint64_t torn = 0, looks = 0, changes = 0, before = 0;
  while (!done) {
    Line& line = target[looks++ % kLines];
    const uint64_t last = line.word[15].load(std::memory_order_acquire);
    for (int i = 0; i < 15; ++i) torn += line.word[i].load(std::memory_order_relaxed) < last;
    changes += last != before;
    before = last;
    if (looks % 4096 == 0) std::this_thread::yield();
  }
  writer.join();
  EXPECT_EQ(torn, 0u) << "of " << looks << " looks, " << changes << " at something new";
}

}  // namespace
}  // namespace weft
