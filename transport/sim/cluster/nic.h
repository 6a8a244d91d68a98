// SPDX-License-Identifier: Apache-2.0
// A host's NIC. Out: queues of what was posted, of which the cable takes a frame whenever it is
// free; control first, then one frame of each queue in turn, as a NIC interleaves its queue pairs.
// In: frames as they come, in a queue that the host empties.
//
// It takes posts up to a bound, small against what a path holds: what waits here is not yet under
// way, and a round trip should not contain it. The host is told when half of it is free again.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "transport/base/post.h"
#include "transport/sim/cluster/port.h"

namespace weft::sim {

// What was posted and has not left as a whole.
struct Outgoing {
  SegmentPost post;     // of a datagram: only if it is data
  ControlPost control;  // else
  uint32_t sent = 0;    // bytes of a write that have left
  uint64_t number = 0;  // of a write
  HostIndex to = 0;
  LinkId peer_link = 0;
  uint32_t entropy = 0;
};

class NicOwner {
 public:
  virtual ~NicOwner() = default;
  // A frame has come and waits, or there is room again.
  virtual void look(Time now) = 0;
  // Fills in the next frame of a queue whose first post is `post`, takes off what has left as a
  // whole. False when the queue has nothing (more).
  virtual bool next_frame(uint32_t queue, Time now, Frame& frame) = 0;
};

class Nic final : public Actor {
 public:
  Nic(Scheduler& scheduler, FrameStore& frames, HostIndex host, uint64_t bound_bytes)
      : scheduler_(scheduler), frames_(frames), host_(host), bound_(bound_bytes) {}

  void connect(std::unique_ptr<Port> port, NicOwner& owner) {
    port_ = std::move(port);
    owner_ = &owner;
  }
  HostIndex host() const { return host_; }
  Port& port() { return *port_; }

  // --- Out. Queues are small numbers of the owner's.
  size_t room(size_t frame_bytes) const {
    return queued_ >= bound_ ? 0 : (bound_ - queued_ + frame_bytes - 1) / frame_bytes;
  }
  void control(Time now, Frame& frame) {
    control_.push_back(&frame);
    start(now);
  }
  void queued(Time now, uint32_t queue, uint64_t bytes) {
    queued_ += bytes;
    above_half_ = queued_ * 2 > bound_;
    if (queue >= waiting_.size()) waiting_.resize(queue + 1, false);
    if (!waiting_[queue]) turns_.push_back(queue), waiting_[queue] = true;
    start(now);
  }
  void unqueued(uint64_t bytes) { queued_ -= bytes; }

  // --- In.
  std::deque<Frame*>& inbox() { return inbox_; }

  void wake(Time now, void* what) override {
    if (what) {
      inbox_.push_back(static_cast<Frame*>(what));
      owner_->look(now);
      return;
    }
    busy_ = false;
    start(now);
  }

 private:
  void start(Time now) {
    while (!busy_) {
      Frame* frame = nullptr;
      if (!control_.empty()) {
        frame = control_.front();
        control_.pop_front();
      } else {
        frame = take_turn(now);
      }
      if (!frame) return;
      port_->send(now, *frame);
      if (port_->free_at() > now) {
        busy_ = true;
        scheduler_.at(port_->free_at(), *this);
      }
      if (above_half_ && queued_ * 2 <= bound_) {
        above_half_ = false;
        owner_->look(now);
      }
    }
  }

  Frame* take_turn(Time now) {
    while (!turns_.empty()) {
      const uint32_t queue = turns_.front();
      turns_.pop_front();
      Frame* frame = frames_.take();
      if (owner_->next_frame(queue, now, *frame)) {
        turns_.push_back(queue);
        return frame;
      }
      waiting_[queue] = false;
      frames_.give_back(frame);
    }
    return nullptr;
  }

  Scheduler& scheduler_;
  FrameStore& frames_;
  const HostIndex host_;
  const uint64_t bound_;
  std::unique_ptr<Port> port_;
  NicOwner* owner_ = nullptr;
  std::deque<Frame*> control_;
  std::deque<uint32_t> turns_;
  std::vector<bool> waiting_;  // by queue: it has a turn
  std::deque<Frame*> inbox_;
  uint64_t queued_ = 0;
  bool busy_ = false;
  bool above_half_ = false;
};

}  // namespace weft::sim
