// SPDX-License-Identifier: Apache-2.0
// Who drives when: callers, the backstop thread, the eager thread; and that idle means asleep.
#include <dirent.h>
#include <sys/eventfd.h>
#include <time.h>

#include <fstream>
#include <string>

#include "multipath/engine/progress_thread.h"
#include "tests/unit/engine/sim_pair.h"
#include "transport/system/clock.h"

namespace weft::test {
namespace {

// A fabric that only counts how often it is polled, and whose descriptor the test makes readable.
class CountingFabric final : public Fabric {
 public:
  CountingFabric() : arrival(eventfd(0, EFD_NONBLOCK)), descriptors{arrival.get()} {}
  const char* name() const override { return "counting"; }
  Offloads offloads() const override { return {}; }
  uint32_t max_segment_bytes() const override { return 1408; }
  int max_paths() const override { return 1; }
  uint32_t speed_mbps() const override { return 0; }
  Result<LinkId> create_link(LinkAddress*) override { return LinkId{1}; }
  Status connect_link(LinkId, std::span<const std::byte>) override { return {}; }
  int paths(LinkId) const override { return 1; }
  void close_link(LinkId) override {}
  Result<MemoryKeys> register_memory(const MemoryRange&) override { return MemoryKeys{}; }
  void deregister_memory(MemoryKeys) override {}
  void kill_path(LinkId, PathIndex, uint32_t) override {}
  void reopen_path(LinkId, PathIndex, uint32_t) override {}
  size_t post(Time, std::span<const SegmentPost> batch) override { return batch.size(); }
  size_t post_control(Time, std::span<const ControlPost> batch) override { return batch.size(); }
  size_t poll(Time, size_t, FabricSink&) override {
    uint64_t value;
    if (::read(arrival.get(), &value, sizeof value) > 0) ++arrivals;
    ++polls;
    if (std::this_thread::get_id() != owner) ++polls_by_others;
    if (busy_for.ns == 0) return 0;
    for (const Time end = monotonic_now() + busy_for; monotonic_now() < end;) {
    }
    return 1;
  }
  std::span<const int> wait_descriptors() const override { return descriptors; }

  FileDescriptor arrival;
  std::array<int, 1> descriptors;
  Duration busy_for{};  // of a poll, which then finds something
  const std::thread::id owner = std::this_thread::get_id();
  std::atomic<int> polls{0};
  std::atomic<int> polls_by_others{0};
  std::atomic<int> arrivals{0};
};

// Waits for what must come; fails the test if it never does.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 20000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

int threads_called(const std::string& name) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    std::ifstream comm("/proc/self/task/" + std::string(entry->d_name) + "/comm");
    std::string line;
    if (std::getline(comm, line) && line == name) ++count;
  }
  closedir(tasks);
  return count;
}

class ProgressModes : public ::testing::TestWithParam<ProgressMode> {};

TEST_P(ProgressModes, TheThreadSleepsWhenIdleAndAnArrivalWakesIt) {
  CountingFabric fabric;
  Engine engine(fabric);
  Progress progress(engine, fabric.wait_descriptors());
  ASSERT_TRUE(progress.start(GetParam(), nullptr).ok());
  EXPECT_EQ(threads_called("weft-engine"), 1);
  int before = -1;
  ASSERT_TRUE(eventually([&] {
    const int now = fabric.polls;
    const bool asleep = now == before;
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return asleep;
  })) << "it never came to rest";
  const uint64_t one = 1;
  ASSERT_EQ(::write(fabric.arrival.get(), &one, sizeof one), 8);
  EXPECT_TRUE(eventually([&] { return fabric.arrivals == 1; })) << "nobody looked";
  progress.stop();
  // The kernel lists a thread for a moment longer than join() waits for it.
  EXPECT_TRUE(eventually([] { return threads_called("weft-engine") == 0; })) << "a thread is left";
}

INSTANTIATE_TEST_SUITE_P(All, ProgressModes,
                         ::testing::Values(ProgressMode::kCaller, ProgressMode::kThread),
                         [](const auto& p) {
                           return p.param == ProgressMode::kCaller ? "Caller" : "Thread";
                         });

TEST(Progress, AnIdleThreadUsesNoProcessorTime) {
  CountingFabric fabric;
  Engine engine(fabric);
  Progress progress(engine, fabric.wait_descriptors());
  ASSERT_TRUE(progress.start(ProgressMode::kCaller, nullptr).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const int polls = fabric.polls;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LE(fabric.polls - polls, 1) << "something woke a thread that has nothing to do";
}

// How many of a hundred polls that each take longer than a stamp is good for are the thread's.
int polls_by_the_thread() {
  CountingFabric fabric;
  fabric.busy_for = milliseconds(2);
  Engine engine(fabric);
  Progress progress(engine, fabric.wait_descriptors());
  if (!progress.start(ProgressMode::kCaller, nullptr).ok()) return 100;
  // The thread's first look may come before the first drive, which then finds it at work.
  for (int i = 0; i < 10000000 && fabric.polls < 100; ++i) progress.drive();
  progress.stop();
  return fabric.polls >= 100 ? fabric.polls_by_others.load() : 100;
}

// With much to do one drive takes longer than a stamp is good for. The thread would compete for the
// engine, and for a core: it took an eighth of one.
TEST(Progress, TheThreadKeepsOutOfTheWayOfACallerWhoseDrivesAreLong) {
  // A caller who is kept from its core by others leaves the engine to the thread, and rightly so.
  int fewest = 100;
  for (int attempt = 0; attempt < 5 && fewest > 10; ++attempt) {
    fewest = std::min(fewest, polls_by_the_thread());
  }
  EXPECT_LE(fewest, 10);
}

TEST(Progress, CallersDriveInCallerModeAndDoNotInThreadMode) {
  for (const bool caller : {true, false}) {
    CountingFabric fabric;
    Engine engine(fabric);
    Progress progress(engine, fabric.wait_descriptors());
    ASSERT_TRUE(
        progress.start(caller ? ProgressMode::kCaller : ProgressMode::kThread, nullptr).ok());
    EXPECT_EQ(progress.callers_drive(), caller);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const int before = fabric.polls;
    for (int i = 0; i < 1000; ++i) progress.drive();
    if (caller) {
      EXPECT_GE(fabric.polls - before, 500);
    } else {
      EXPECT_LT(fabric.polls - before, 500);
    }
  }
}

TEST(Progress, AnExclusiveCallerIsNotStarvedBySpinningDrivers) {
  CountingFabric fabric;
  Engine engine(fabric);
  Progress progress(engine, fabric.wait_descriptors());
  ASSERT_TRUE(progress.start(ProgressMode::kCaller, nullptr).ok());
  std::atomic<bool> stop{false};
  std::vector<std::thread> drivers;
  for (int i = 0; i < 2; ++i) {
    drivers.emplace_back([&] {
      while (!stop) progress.drive();
    });
  }
  for (int i = 0; i < 200; ++i) {
    Progress::Exclusive exclusive(progress);
    EXPECT_FALSE(exclusive->commands_waiting());
  }
  stop = true;
  for (auto& t : drivers) t.join();
}

}  // namespace
}  // namespace weft::test
