// SPDX-License-Identifier: Apache-2.0
// One direction of a cable with the queue before it: store and forward, first in, first out.
//
// Since nobody overtakes, the moment at which a frame leaves is known when it comes, and so is how
// much is before it: one event a frame and hop, none for the queue. Control may be told to go
// before data; then it waits for what is being sent just now (half a data frame, on average) and
// delays what is behind it.
//
// Congestion marks: none below `mark_from` bytes waiting, all above `mark_all`, in between the more
// the fuller. What finds no room is dropped.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/base/random.h"
#include "transport/sim/cluster/frame.h"
#include "transport/sim/cluster/scheduler.h"

namespace weft::sim {

struct PortConfig {
  uint64_t bits_per_second = 100'000'000'000;
  Duration delay = microseconds(1);  // of the cable
  uint64_t queue_bytes = 178'450;
  uint64_t mark_from = 0, mark_all = 0;  // both 0: it marks nothing
  bool control_first = false;
};

// What is wrong with a cable, from `from` on and before `until`.
struct CableFault {
  enum class What : uint8_t {
    kSilent,  // nothing gets through, nobody is told
    kSlow,    // at `share` of its speed
    kLossy,   // each frame is lost with a chance of `share`
    kMarks,   // each data frame is marked with a chance of `share`
  };
  What what = What::kSilent;
  double share = 0;
  Time from;
  Time until = Time::never();
};

struct PortCounters {
  uint64_t frames = 0, bytes = 0;  // sent
  uint64_t dropped = 0;            // for want of room
  uint64_t lost = 0;               // to a fault
  uint64_t marked = 0;
  uint64_t most_waiting = 0;  // bytes
};

class Port {
 public:
  Port(Scheduler& scheduler, FrameStore& frames, Random& random, const PortConfig& config,
       Actor& next)
      : scheduler_(scheduler), frames_(frames), random_(random), config_(config), next_(next) {}

  void add_fault(const CableFault& fault) { faults_.push_back(fault); }

  // The frame is the port's: it goes on to the next actor, or back to the store.
  void send(Time now, Frame& frame) {
    double speed = 1;
    if (!faults_.empty() && !suffer(now, frame, &speed)) return drop(frame, counters_.lost);
    const int64_t now_ps = now.ns * 1000;
    const int64_t wait_ps = std::max<int64_t>(free_at_ps_ - now_ps, 0);
    const auto waiting = static_cast<uint64_t>(static_cast<double>(bytes_in(wait_ps)) * speed);
    if (waiting + frame.wire_bytes > config_.queue_bytes) return drop(frame, counters_.dropped);
    counters_.most_waiting = std::max(counters_.most_waiting, waiting);
    mark(frame, waiting);
    const auto takes_ps =
        static_cast<int64_t>(static_cast<double>(picoseconds(frame.wire_bytes)) / speed);
    free_at_ps_ = now_ps + wait_ps + takes_ps;
    const bool before_others = frame.control && config_.control_first;
    const int64_t leaves_ps =
        before_others ? now_ps + std::min(wait_ps, half_a_frame_ps_) + takes_ps : free_at_ps_;
    if (!frame.control) half_a_frame_ps_ = takes_ps / 2;
    ++counters_.frames;
    counters_.bytes += frame.wire_bytes;
    scheduler_.at(Time{(leaves_ps + 999) / 1000} + config_.delay, next_, &frame);
  }

  // When the last of what it has been given will have left.
  Time free_at() const { return Time{(free_at_ps_ + 999) / 1000}; }
  uint64_t waiting(Time now) const {
    return bytes_in(std::max<int64_t>(free_at_ps_ - now.ns * 1000, 0));
  }
  const PortConfig& config() const { return config_; }
  const PortCounters& counters() const { return counters_; }

 private:
  int64_t picoseconds(uint64_t bytes) const {
    return static_cast<int64_t>(bytes * 8'000'000'000'000u / config_.bits_per_second);
  }
  uint64_t bytes_in(int64_t ps) const {
    return static_cast<uint64_t>(static_cast<double>(ps) *
                                 static_cast<double>(config_.bits_per_second) / 8e12);
  }
  void drop(Frame& frame, uint64_t& counter) {
    ++counter;
    frames_.give_back(&frame);
  }

  void mark(Frame& frame, uint64_t waiting) {
    if (frame.control || config_.mark_all == 0 || waiting < config_.mark_from) return;
    const double chance = waiting >= config_.mark_all
                              ? 1
                              : static_cast<double>(waiting - config_.mark_from) /
                                    static_cast<double>(config_.mark_all - config_.mark_from);
    if (!random_.chance(chance)) return;
    frame.marked = true;
    ++counters_.marked;
  }

  // False when the frame is lost.
  bool suffer(Time now, Frame& frame, double* speed) {
    for (const CableFault& fault : faults_) {
      if (now < fault.from || now >= fault.until) continue;
      switch (fault.what) {
        case CableFault::What::kSilent: return false;
        case CableFault::What::kSlow: *speed *= fault.share; break;
        case CableFault::What::kLossy:
          if (random_.chance(fault.share)) return false;
          break;
        case CableFault::What::kMarks:
          frame.marked = frame.marked || (!frame.control && random_.chance(fault.share));
          break;
      }
    }
    return true;
  }

  Scheduler& scheduler_;
  FrameStore& frames_;
  Random& random_;
  const PortConfig config_;
  Actor& next_;
  std::vector<CableFault> faults_;
  int64_t free_at_ps_ = 0;
  int64_t half_a_frame_ps_ = 0;
  PortCounters counters_;
};

}  // namespace weft::sim
