// SPDX-License-Identifier: Apache-2.0
// A network of a few ways for one selector: a sender with a fixed window of bursts, ways that are a
// queue and a rate each, paths that are spread over them, and acks of packets that let the next
// burst go.
//
// It does to a selector what a connection does: marks from the delay in the queue and from the
// switch, time-outs of what is overdue, three in a row without an arrival make a path dead, and
// probes bring it back. Virtual time and one seed: a run is the same on every machine. Single
// thread; the selector is owned.
#pragma once

#include <algorithm>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "multipath/path/selector.h"
#include "transport/base/random.h"

namespace weft {

struct Way {
  Duration service = microseconds(10);  // of one burst, on average
  double ecn = 0;                       // the part of packets that come back marked
  bool silent = false;
  Time free_at{};
  uint64_t sent = 0;       // bursts
  uint64_t delivered = 0;  // packets
};

struct WaysConfig {
  std::string selector;
  std::vector<Way> ways;
  int paths = 32;  // path i takes way i modulo the number of ways
  uint32_t window = 64;
  uint64_t seed = 1;
  Duration mark_delay = microseconds(100);
};

inline PathMask all_of(int paths) {
  PathMask mask;
  for (int i = 0; i < paths; ++i) mask.set(static_cast<PathIndex>(i), true);
  return mask;
}

class Ways {
 public:
  static constexpr Duration kBaseRtt = microseconds(100);
  static constexpr Duration kTimeout = milliseconds(2);
  static constexpr Duration kFreeze = milliseconds(10);
  static constexpr int kDeadAfter = 3;
  static constexpr uint32_t kPackets = 4;  // of a burst

  explicit Ways(const WaysConfig& config)
      : config_(config),
        ways_(config.ways),
        paths_(static_cast<size_t>(config.paths)),
        random_(config.seed),
        selector_(make_selector(config.selector, {config.paths, config.seed + 100, kFreeze})),
        usable_(all_of(config.paths)) {}

  Way& way(size_t i) { return ways_[i]; }
  Time now() const { return now_; }
  uint64_t wrong() const { return wrong_; }  // bursts for a path that was not usable
  int dead() const { return dead_; }

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

  // Forgets what was counted, so that the next run counts from here.
  void count_anew() {
    for (Way& way : ways_) way.sent = way.delivered = 0;
  }
  uint64_t delivered() const {
    uint64_t sum = 0;
    for (const Way& way : ways_) sum += way.delivered;
    return sum;
  }
  // Of what all ways together could have carried in so long.
  double used(Duration length) const {
    double most = 0;
    for (const Way& way : ways_) most += length.seconds() / way.service.seconds() * kPackets;
    return static_cast<double>(delivered()) / most;
  }
  // What the way carried of all that was carried.
  double share(size_t i) const {
    return static_cast<double>(ways_[i].delivered) / static_cast<double>(delivered());
  }

 private:
  enum class Kind { kAck, kLoss, kDeadline, kProbe };
  struct Event {
    Time at;
    uint64_t order = 0;
    Kind kind = Kind::kAck;
    PathIndex path = 0;
    Mark mark = Mark::kNone;
    Duration rtt{};
    bool operator<(const Event& o) const { return std::pair{at, order} > std::pair{o.at, o.order}; }
  };
  struct PathState {
    int outstanding = 0;  // packets, sent into the silence or on the way
    int timeouts = 0;
    bool dead = false;
    bool armed = false;
    Time heard{};
  };

  size_t way_of(PathIndex path) const { return path % ways_.size(); }
  void at(Time when, Kind kind, PathIndex path, Mark mark = Mark::kNone, Duration rtt = {}) {
    events_.push({when, ++order_, kind, path, mark, rtt});
  }

  void fill() {
    while (in_flight_ + kPackets <= config_.window * kPackets && usable_.any()) {
      const PathIndex path = selector_->next({usable_, now_, in_flight_ / kPackets});
      if (!usable_.test(path)) {
        ++wrong_;
        return;
      }
      send(path);
    }
  }

  void send(PathIndex path) {
    Way& way = ways_[way_of(path)];
    PathState& state = paths_[path];
    ++way.sent;
    if (!state.armed) {
      state.armed = true;
      at(now_ + kTimeout, Kind::kDeadline, path);
    }
    for (uint32_t packet = 0; packet < kPackets; ++packet) {
      ++in_flight_;
      ++state.outstanding;
      if (way.silent) {
        at(now_ + kBaseRtt * 3, Kind::kLoss, path);  // repaired elsewhere
      } else {
        carry(way, path);
      }
    }
  }

  void carry(Way& way, PathIndex path) {
    const Time there = now_ + kBaseRtt / 2;
    const Duration wait = way.free_at > there ? way.free_at - there : Duration{0};
    // A packet takes its part of the service, give or take a tenth.
    const int64_t tenth = way.service.ns / kPackets / 10;
    const auto more = static_cast<int64_t>(random_.below(static_cast<uint64_t>(2 * tenth + 1)));
    way.free_at = there + wait + nanoseconds(tenth * 9 + more);
    const Mark mark = random_.chance(way.ecn)     ? Mark::kEcn
                      : wait > config_.mark_delay ? Mark::kQueue
                                                  : Mark::kNone;
    const Time back = way.free_at + kBaseRtt / 2;
    at(back, Kind::kAck, path, mark, back - now_);
  }

  void handle(const Event& event) {
    PathState& state = paths_[event.path];
    switch (event.kind) {
      case Kind::kAck:
        --in_flight_;
        --state.outstanding;
        ++ways_[way_of(event.path)].delivered;
        selector_->on_ack({event.path, 1.0 / kPackets, event.mark, event.rtt, now_});
        heard(event.path);
        break;
      case Kind::kLoss:  // the connection repairs it: the path only knows that it hears nothing
        --in_flight_;
        break;
      case Kind::kDeadline: deadline(event.path); break;
      case Kind::kProbe:
        if (ways_[way_of(event.path)].silent) {
          at(now_ + kTimeout * 2, Kind::kProbe, event.path);
        } else {
          state.outstanding = 0;
          heard(event.path);
        }
        break;
    }
  }

  void heard(PathIndex path) {
    PathState& state = paths_[path];
    state.heard = now_;
    state.timeouts = 0;
    if (!state.dead) return;
    state.dead = false;
    --dead_;
    usable_.set(path, true);
    selector_->on_alive(path, true);
  }

  void deadline(PathIndex path) {
    PathState& state = paths_[path];
    state.armed = false;
    if (state.outstanding == 0 || state.dead) return;
    state.armed = true;
    if (now_ - state.heard < kTimeout) {
      at(state.heard + kTimeout, Kind::kDeadline, path);
      return;
    }
    selector_->on_timeout(path, now_);
    if (++state.timeouts < kDeadAfter) {
      at(now_ + kTimeout * (int64_t{1} << state.timeouts), Kind::kDeadline, path);
      return;
    }
    state.dead = true;
    state.armed = false;
    ++dead_;
    usable_.set(path, false);
    selector_->on_alive(path, false);
    at(now_ + kTimeout, Kind::kProbe, path);
  }

  const WaysConfig config_;
  std::vector<Way> ways_;
  std::vector<PathState> paths_;
  Random random_;
  std::unique_ptr<Selector> selector_;
  PathMask usable_;
  std::priority_queue<Event> events_;
  Time now_{};
  uint64_t order_ = 0;
  uint32_t in_flight_ = 0;
  uint64_t wrong_ = 0;
  int dead_ = 0;
};

inline constexpr Duration kSettle = milliseconds(20);
inline constexpr Duration kLong = milliseconds(100);

// Ways of equal speed.
inline WaysConfig even(const char* selector, size_t ways, uint32_t window, uint64_t seed) {
  return {selector, std::vector<Way>(ways), 32, window, seed};
}

inline Ways settled(const WaysConfig& config) {
  Ways net(config);
  net.run(kSettle);
  net.count_anew();
  net.run(kLong);
  return net;
}

}  // namespace weft
