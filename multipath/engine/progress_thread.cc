// SPDX-License-Identifier: Apache-2.0
// Driving by callers, and the life of the thread "weft-engine" (progress_thread.h says when it does
// what).
#include "multipath/engine/progress_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>

#include "transport/system/clock.h"
#include "transport/system/log.h"

namespace weft {
namespace {

constexpr Duration kCallerFresh = milliseconds(1);  // a younger stamp: callers are at it
// thread mode: this long without work before sleeping
constexpr Duration kSpin = microseconds(200);
// thread mode: how often a busy thread looks at them
constexpr Duration kChoresPeriod = milliseconds(1);
constexpr Duration kBusyElsewhere = microseconds(50);  // thread mode: a set-up call has the engine
constexpr Duration kLongestSleep = seconds(60);  // keeps every wait bounded; costs nothing
// of a driver that finds new work after its unlock; then it is the next one's
constexpr int kTries = 4;
constexpr size_t kMaxDescriptors = 64;

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

}  // namespace

Progress::Progress(Engine& engine, std::span<const int> fabric_descriptors)
    : engine_(engine), fabric_descriptors_(fabric_descriptors.begin(), fabric_descriptors.end()) {}

Status Progress::start(ProgressMode mode, Chores* chores) {
  chores_ = chores;
  eager_ = mode == ProgressMode::kThread ||
           (mode == ProgressMode::kAuto && usable_cpus() >= kCpusToSpare);
  if (fabric_descriptors_.size() > kMaxDescriptors) {
    return {Code::kInternal,
            "the fabric has more descriptors to wait on than the engine's thread can"};
  }
  bell_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell_) {
    return {Code::kSystem, std::string("no eventfd for the engine's thread: ") + strerror(errno)};
  }
  // Signals are for the application's threads: ours takes none.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "weft-engine");
  } catch (const std::system_error& error) {
    status = {Code::kSystem, std::string("cannot start the engine's thread: ") + error.what()};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void Progress::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_seq_cst);
  ring();
  thread_.join();
}

void Progress::ring() {
  const uint64_t one = 1;
  asleep_.store(false, std::memory_order_relaxed);  // one ring is enough
  // A full counter (EAGAIN) is a bell that rings already.
  [[maybe_unused]] const ssize_t n = ::write(bell_.get(), &one, sizeof one);
}

void Progress::drive() {
  if (eager_) return;
  bool worked = false;
  for (int i = 0; i < kTries; ++i) {
    // who is at it looks for our work afterwards
    if (!try_drive(monotonic_now(), true, &worked)) return;
    if (!engine_.commands_waiting()) return;
  }
}

bool Progress::try_drive(Time now, bool stamp, bool* worked) {
  // Of our commands, pushed before, and the holder's look at them after its unlock, one sees the
  // other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (claims_.load(std::memory_order_relaxed) > 0) return false;
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  *worked = engine_.progress(now);
  publish_deadline();
  // Of its end, since what there was to do may have taken longer than a stamp is good for.
  if (stamp) stamp_ns_.store((*worked ? monotonic_now() : now).ns, std::memory_order_relaxed);
  lock.unlock();
  after_unlock();
  return true;
}

void Progress::after_unlock() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!asleep_.load(std::memory_order_relaxed)) return;
  if (deadline_ns_.load(std::memory_order_relaxed) < armed_ns_.load(std::memory_order_relaxed))
    ring();
}

Progress::Exclusive::Exclusive(Progress& progress) : progress_(progress) {
  progress_.claims_.fetch_add(1);
  progress_.mutex_.lock();
  progress_.claims_.fetch_sub(1);
}

Progress::Exclusive::~Exclusive() {
  for (int i = 0;; ++i) {
    try {
      progress_.engine_.progress(monotonic_now());
    } catch (const std::exception& error) {
      WEFT_WARN_LIMITED("driving the engine met an exception: {}", error.what());
    }
    progress_.publish_deadline();
    progress_.mutex_.unlock();
    progress_.after_unlock();
    if (!progress_.engine_.commands_waiting()) return;
    if (i + 1 == kTries || !progress_.mutex_.try_lock()) break;
  }
  progress_.notify();
}

// What could throw here is memory running out; the thread outlives it, and says so.
void Progress::run() {
  Rounds rounds{monotonic_now(), monotonic_now()};
  while (!stopping_.load(std::memory_order_relaxed)) {
    try {
      round(rounds);
    } catch (const std::exception& error) {
      WEFT_WARN_LIMITED("the engine's thread met an exception and goes on: {}", error.what());
      wait(monotonic_now() + kChoresPeriod, false);
    }
  }
}

void Progress::round(Rounds& rounds) {
  const Time now = monotonic_now();
  if (now >= rounds.next_chores) {
    rounds.next_chores = now + kChoresPeriod;
    if (chores_) chores_->serve(now);
  }
  if (!eager_) {
    const int64_t stamp = stamp_ns_.load(std::memory_order_relaxed);
    const Time fresh_until = Time{std::max(stamp, now.ns - kCallerFresh.ns)} + kCallerFresh;
    if (fresh_until > now) {
      if (wait(fresh_until, false)) rounds.next_chores = now;
      return;
    }
  }
  bool worked = false;
  if (!try_drive(now, false, &worked)) {
    // Somebody is at it. Sleeping on descriptors that are readable would be spinning.
    if (wait(now + (eager_ ? kBusyElsewhere : kCallerFresh), false)) rounds.next_chores = now;
    return;
  }
  if (worked) rounds.last_work = now;
  if (worked || (eager_ && now - rounds.last_work < kSpin)) return;
  if (sleep()) rounds.next_chores = now;
}

bool Progress::sleep() {
  bool chores_due = false;
  const int64_t armed = deadline_ns_.load(std::memory_order_seq_cst);
  armed_ns_.store(armed, std::memory_order_relaxed);
  asleep_.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Once more: what was submitted or driven before asleep_ was seen has not rung.
  if (!engine_.commands_waiting() && deadline_ns_.load(std::memory_order_relaxed) >= armed &&
      !stopping_.load(std::memory_order_relaxed)) {
    chores_due = wait(Time{armed}, true);
  }
  asleep_.store(false, std::memory_order_relaxed);
  return chores_due;
}

// Until then, or the bell, or the chores, or (armed) an arrival. Returns whether the chores are
// due.
bool Progress::wait(Time until, bool arm_fabric) {
  std::array<pollfd, kMaxDescriptors + 2> set;
  nfds_t count = 0;
  set[count++] = {bell_.get(), POLLIN, 0};
  set[count++] = {chores_ ? chores_->descriptor() : -1, POLLIN, 0};  // ppoll passes over -1
  if (arm_fabric) {
    for (int fd : fabric_descriptors_) set[count++] = {fd, POLLIN, 0};
  }
  const Time now = monotonic_now();
  const Time chores_at = chores_ ? chores_->deadline() : Time::never();
  until = earlier(earlier(until, chores_at), now + kLongestSleep);
  const Duration span = until > now ? until - now : Duration{0};
  const timespec limit{span.ns / 1000000000, span.ns % 1000000000};
  ppoll(set.data(), count, &limit, nullptr);
  if (set[0].revents & POLLIN) {
    uint64_t rings;
    [[maybe_unused]] const ssize_t n = ::read(bell_.get(), &rings, sizeof rings);
  }
  return set[1].revents != 0 || chores_at <= until;
}

}  // namespace weft
