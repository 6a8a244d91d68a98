// SPDX-License-Identifier: Apache-2.0
// copy_lines and HostMemory: every byte right, none beside them, at any size and alignment, and a
// line's last word after the rest, as a reader on another core sees it.
#include "transport/memory.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

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

// Two pages of which the second cannot be written, so that a copy stops, by a signal, at the first
// store that reaches into it: what stands in the first page then was stored before.
class StoppedCopy {
 public:
  StoppedCopy() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    void* both =
        mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED) return;
    pages_ = static_cast<std::byte*>(both);
    if (mprotect(pages_ + page_, page_, PROT_NONE) != 0) return;
    struct sigaction action = {};
    action.sa_handler = [](int) { siglongjmp(back_, 1); };
    ready_ = sigaction(SIGSEGV, &action, &before_) == 0;
  }
  ~StoppedCopy() {
    if (ready_) sigaction(SIGSEGV, &before_, nullptr);
    if (pages_) munmap(pages_, 2 * page_);
  }

  bool ready() const { return ready_; }
  // Copies so that `fits` bytes lie in the first page; those bytes as they were when the copy
  // stopped. Empty: it did not stop.
  std::vector<std::byte> run(const std::vector<std::byte>& source, size_t fits) {
    std::byte* to = pages_ + page_ - fits;
    std::fill(to, to + fits, kUntouched);
    if (!stops(to, source)) return {};
    return {to, to + fits};
  }

 private:
  // Functions of their own: what a caller keeps in registers survives the jump.
  [[gnu::noinline]] static bool stops(std::byte* to, const std::vector<std::byte>& source) {
    if (sigsetjmp(back_, 1) != 0) return true;
    copy(to, source);
    return false;
  }
  [[gnu::noinline]] static void copy(std::byte* to, const std::vector<std::byte>& source) {
    copy_lines(to, source.data(), source.size());
  }

  static sigjmp_buf back_;
  size_t page_;
  std::byte* pages_ = nullptr;
  bool ready_ = false;
  struct sigaction before_ = {};
};
sigjmp_buf StoppedCopy::back_;

TEST(CopyLines, ALinesLastWordIsStoredAfterTheRestAndLinesGoInOrder) {
  StoppedCopy stopped;
  ASSERT_TRUE(stopped.ready());
  for (size_t lines = 1; lines <= 8; ++lines) {
    const std::vector<std::byte> source(lines * 128, std::byte{1});
    for (size_t line = 0; line < lines; ++line) {
      const size_t fits = line * 128 + 120;  // all but the last word of this line
      const std::vector<std::byte> seen = stopped.run(source, fits);
      ASSERT_EQ(seen.size(), fits);
      // The last 16 bytes go in one store.
      for (size_t i = 0; i < line * 128 + 112; ++i) {
        ASSERT_EQ(seen[i], std::byte{1})
            << lines << " lines, stopped in " << line << ", byte " << i;
      }
    }
  }
}

TEST(CopyLines, WhatIsLessThanALineGoesWordByWordFrontToBack) {
  StoppedCopy stopped;
  ASSERT_TRUE(stopped.ready());
  for (size_t words = 1; words < 16; ++words) {
    const std::vector<std::byte> source(128 + words * 8, std::byte{1});
    for (size_t word = 0; word < words; ++word) {
      const size_t fits = 128 + word * 8;
      const std::vector<std::byte> seen = stopped.run(source, fits);
      ASSERT_EQ(seen, std::vector<std::byte>(fits, std::byte{1})) << words << " words, " << word;
    }
  }
}

// The same between two cores. A writer copies lines of one number after another; a reader that
// finds a number in the last word of a line must find nothing older in the line. What LL128 does on
// a GPU, done by a core.
TEST(CopyLines, AReaderThatSeesTheLastWordSeesTheWholeLine) {
  struct alignas(128) Line {
    std::atomic<uint64_t> word[16];
  };
  constexpr size_t kLines = 64;
  constexpr uint64_t kRounds = 2000;
  std::vector<Line> target(kLines);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
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
