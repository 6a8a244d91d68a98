// SPDX-License-Identifier: Apache-2.0
// Who drives an engine, and when: callers of test, or a thread of the engine's own; and its lock.
//
// Caller mode (few cores): whoever calls drive() progresses the engine, one at a time, by try-lock.
// The thread "weft-engine" is a backstop for timers, acks and peers while nobody calls: each drive
// stamps the engine, and while the stamp is younger than 1 ms the thread waits on a timer only.
// Then it drives, arms the fabric's descriptors, looks at the queues once more and sleeps until the
// engine's deadline; only in that state (`asleep_`) does notify() ring its eventfd. Thread mode
// (cores to spare): the thread spins while there is traffic and sleeps in the same way when there
// is none; callers only look.
//
// No wake-up is lost: work is published before the try-lock, and whoever held the lock looks for
// work again after the unlock. A drive that leaves a deadline earlier than the one the thread
// sleeps for rings it. With nothing to do and no deadline everything sleeps: an idle endpoint costs
// no CPU.
//
// Locks: one mutex, the engine's. Exclusive takes it for set-up; drivers stand back while someone
// waits for it, since a spinning try-lock would starve a waiter. Ownership: engine, descriptors and
// chores outlive this. What may fail: start(), when the process may have no more threads or
// descriptors.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "multipath/engine/engine.h"
#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/system/config.h"
#include "transport/system/file_descriptor.h"

namespace weft {

// What else the thread looks after: the endpoint's out-of-band sockets.
class Chores {
 public:
  virtual ~Chores() = default;
  virtual int descriptor() const = 0;  // readable when serve() would find something; -1: none
  virtual Time deadline() const = 0;   // of the next thing that needs no input; any thread
  virtual void serve(Time now) = 0;    // never blocks on a peer
};

class Progress {
 public:
  Progress(Engine& engine, std::span<const int> fabric_descriptors);
  ~Progress() { stop(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // kAuto becomes kThread with at least this many CPUs to run on.
  static constexpr int kCpusToSpare = 8;
  Status start(ProgressMode mode, Chores* chores);
  // Joins the thread. Nobody else may be inside when the owner goes on to destroy things.
  void stop();

  // For callers who wait for something: drives the engine if that is their job and nobody else is
  // at it.
  void drive();
  // Commands were submitted: the thread must not sleep over them.
  void notify() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_relaxed)) ring();
  }
  // The chores' deadline has come nearer: likewise.
  void nudge() { notify(); }
  bool callers_drive() const { return !eager_; }

  // The engine for set-up calls. On release the engine is driven once, so that what was asked for
  // gets under way, and the thread is told.
  class Exclusive {
   public:
    explicit Exclusive(Progress& progress);
    ~Exclusive();
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;
    Engine* operator->() { return &progress_.engine_; }
    Engine& engine() { return progress_.engine_; }

   private:
    Progress& progress_;
  };

 private:
  // What the thread remembers from one round of its life to the next.
  struct Rounds {
    Time last_work;
    Time next_chores;
  };
  void run();
  void round(Rounds& rounds);
  bool try_drive(Time now, bool stamp, bool* worked);
  void publish_deadline() {
    deadline_ns_.store(engine_.poll_timeout().ns, std::memory_order_seq_cst);
  }
  void after_unlock();
  void ring();
  bool sleep();  // both return whether the chores are due
  bool wait(Time until, bool arm_fabric);

  Engine& engine_;
  const std::vector<int> fabric_descriptors_;
  Chores* chores_ = nullptr;
  bool eager_ = false;
  FileDescriptor bell_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};

  alignas(64) std::mutex mutex_;
  std::atomic<int> claims_{0};  // set-up calls that wait for the mutex

  alignas(64) std::atomic<int64_t> stamp_ns_{INT64_MIN};  // of the last drive by a caller
  // of the engine after the last drive by anybody
  std::atomic<int64_t> deadline_ns_{INT64_MAX};
  std::atomic<int64_t> armed_ns_{INT64_MAX};  // for which the thread sleeps
  std::atomic<bool> asleep_{false};
};

}  // namespace weft
