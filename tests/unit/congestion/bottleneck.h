// SPDX-License-Identifier: Apache-2.0
// One queue that flows share: each has a pipe and a law, sends while its window has room, and hears
// of each packet one base RTT and the wait in the queue later.
//
// It feeds pipe and law as a connection does: a sample, what was delivered, an ack with the queue
// delay and the mark that the pipe makes of it; a lost packet is told a quarter of an RTT late.
// Virtual time and one seed: a run is the same on every machine. Single thread; the flows are
// owned.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "multipath/congestion/law.h"
#include "transport/base/random.h"

namespace weft {

struct BottleneckConfig {
  double bytes_per_second = 1.25e9;
  Duration base_rtt = microseconds(100);
  Duration jitter{};                    // of the way back, uniform up to this
  double loss = 0;                      // the part of packets that vanish
  Duration longest_queue = seconds(1);  // what would wait longer is lost
  PipeConfig pipe;
  const char* name = "nscc";
  LawConfig law;
  uint64_t seed = 1;
};

class Bottleneck {
 public:
  struct Flow {
    std::unique_ptr<Pipe> pipe;
    std::unique_ptr<Law> law;
    uint64_t in_flight = 0;
    uint64_t delivered = 0;
    uint64_t lost = 0;  // packets
    double waited = 0;  // seconds, all packets
    uint64_t packets = 0;
    uint64_t least_window = UINT64_MAX;
    uint64_t most_window = 0;
  };

  explicit Bottleneck(const BottleneckConfig& config) : config_(config), random_(config.seed) {}

  // The flow begins to send. It has seen the empty network if `knows`.
  void add(bool knows) {
    Flow flow;
    flow.pipe = std::make_unique<Pipe>(config_.pipe);
    flow.law = make_law(config_.name, config_.law, *flow.pipe);
    if (knows) flow.pipe->on_sample(now_, config_.base_rtt + service(), false, false);
    flows_.push_back(std::move(flow));
  }
  Flow& flow(size_t i) { return flows_[i]; }
  Time now() const { return now_; }

  void run(Duration length) {
    const Time end = now_ + length;
    fill();
    while (!events_.empty() && events_.top().at <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      handle(event);
      fill();
    }
    now_ = end;
  }

  void count_anew() {
    counted_from_ = now_;
    for (Flow& flow : flows_) {
      flow.delivered = flow.packets = 0;
      flow.lost = 0;
      flow.waited = 0;
      flow.least_window = UINT64_MAX;
      flow.most_window = 0;
    }
  }
  // The part of the bottleneck's rate that came out of it since count_anew.
  double utilisation() const {
    double sum = 0;
    for (const Flow& flow : flows_) sum += static_cast<double>(flow.delivered);
    return sum / ((now_ - counted_from_).seconds() * config_.bytes_per_second);
  }
  // The part of the packets that was lost.
  double lost() const {
    double lost = 0;
    double all = 0;
    for (const Flow& flow : flows_) {
      lost += static_cast<double>(flow.lost);
      all += static_cast<double>(flow.lost + flow.packets);
    }
    return lost / all;
  }
  double mean_wait(size_t i) const {
    return flows_[i].waited / static_cast<double>(flows_[i].packets);
  }

 private:
  struct Event {
    Time at;
    uint64_t order = 0;
    size_t flow = 0;
    Time sent;
    Duration wait{};
    bool lost = false;
    bool operator<(const Event& o) const { return std::pair{at, order} > std::pair{o.at, o.order}; }
  };

  Duration service() const {
    return nanoseconds(std::llround(config_.law.segment_bytes / config_.bytes_per_second * 1e9));
  }

  // In turn, a packet each, so that nobody is first for ever.
  void fill() {
    for (bool sent = true; sent;) {
      sent = false;
      for (size_t k = 0; k < flows_.size(); ++k) {
        const size_t i = (first_ + k) % flows_.size();
        Flow& flow = flows_[i];
        if (flow.in_flight + config_.law.segment_bytes > flow.law->window()) continue;
        send(i, flow);
        sent = true;
      }
      if (!flows_.empty()) first_ = (first_ + 1) % flows_.size();
    }
  }

  void send(size_t i, Flow& flow) {
    flow.in_flight += config_.law.segment_bytes;
    const Duration wait = free_at_ > now_ ? free_at_ - now_ : Duration{0};
    const bool lost = random_.chance(config_.loss) || wait > config_.longest_queue;
    if (!lost) free_at_ = now_ + wait + service();
    Duration back = config_.base_rtt;
    if (config_.jitter.ns > 0)
      back = back + nanoseconds(static_cast<int64_t>(
                        random_.below(static_cast<uint64_t>(config_.jitter.ns))));
    const Duration whole = wait + service() + back;
    events_.push({now_ + (lost ? whole + whole / 4 : whole), ++order_, i, now_, wait, lost});
  }

  void handle(const Event& event) {
    Flow& flow = flows_[event.flow];
    const uint32_t bytes = config_.law.segment_bytes;
    flow.in_flight -= bytes;
    if (event.lost) {
      flow.law->on_loss(now_, bytes);
      ++flow.lost;
    } else {
      const Duration rtt = now_ - event.sent;
      flow.pipe->on_sample(now_, rtt, false, flow.law->at_least());
      flow.pipe->on_delivered(now_, bytes);
      const Duration queued = flow.pipe->queue_delay(rtt);
      flow.law->on_ack({now_, bytes, rtt, queued, queued > flow.pipe->mark_delay()});
      flow.delivered += bytes;
      flow.waited += event.wait.seconds();
      ++flow.packets;
    }
    flow.least_window = std::min(flow.least_window, flow.law->window());
    flow.most_window = std::max(flow.most_window, flow.law->window());
  }

  const BottleneckConfig config_;
  Random random_;
  std::vector<Flow> flows_;
  std::priority_queue<Event> events_;
  Time now_{1000};
  Time counted_from_{1000};
  Time free_at_{};
  uint64_t order_ = 0;
  size_t first_ = 0;
};

}  // namespace weft
