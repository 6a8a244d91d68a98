// SPDX-License-Identifier: Apache-2.0
// Posting and settling copies; loss and time-outs are in ledger_loss.cc, the paths of control in
// ledger_control.cc.
#include "multipath/connection/ledger.h"

#include <algorithm>

namespace weft {
namespace {

// An empty message still occupies the network a little.
constexpr uint32_t kLeastBytes = 64;

// What is seen of reordering between paths fades with so many late arrivals.
constexpr int64_t kReorderMemory = 1024;

// A window is so many bursts, if segments allow: fewer, and paths take turns too coarsely. But
// short bursts cost more than long ones: what goes out in a moment goes on one path all the same.
constexpr uint64_t kBurstsInWindow = 32;
constexpr Duration kBurstTime = microseconds(50);

constexpr int kFreezeFloors = 5;

// The floor of time-outs is some noises long: so much of a deviation may be noise, at most.
constexpr int kFloorNoises = 8;
}  // namespace

Ledger::Ledger(const ConnectionConfig& config, SendMessagePool& messages)
    : config_(config),
      messages_(messages),
      paths_(static_cast<size_t>(std::clamp(config.paths, 1, kMaxPaths))),
      pipe_({config.port_bytes_per_second, config.noise_floor, config.timer_floor / kFloorNoises,
             config.longest_base_rtt, config.timer_floor}) {
  const SelectorConfig choice{static_cast<int>(paths_.size()), config.seed,
                              config.timer_floor * kFreezeFloors};
  const LawConfig control{config.window_bytes, config.segment_bytes};
  selector_ = make_selector(config.selector, choice);
  if (!selector_) selector_ = make_selector("oblivious", choice);
  law_ = make_law(config.law, control, pipe_);
  if (!law_) law_ = make_law("fixed", control, pipe_);
  for (size_t i = 0; i < paths_.size(); ++i) {
    paths_[i].index = static_cast<PathIndex>(i);
    usable_.set(paths_[i].index, true);
  }
  kills_wanted_.reserve(paths_.size());
}

uint32_t Ledger::burst_bytes() const {
  const auto moment = static_cast<uint64_t>(pipe_.bytes_per_second() * kBurstTime.seconds());
  const uint64_t part = std::max(law_->window() / kBurstsInWindow, moment);
  return static_cast<uint32_t>(std::clamp<uint64_t>(
      part, std::min(config_.segment_bytes, config_.burst_bytes), config_.burst_bytes));
}

Path* Ledger::choose_path(Time now) {
  if (!usable_.any()) return nullptr;
  const auto bursts = static_cast<uint32_t>(in_flight_ / burst_bytes());
  Path& path = paths_[selector_->next({usable_, now, bursts})];
  return path.usable() ? &path : nullptr;
}

void Ledger::refresh(Path& path) {
  usable_.set(path.index, path.usable());
  busy_.set(path.index, !path.copies.empty());
}

void Ledger::enter(Path& path, Copy& copy, Time now) {
  copy.settled = false;
  copy.sent = now;
  copy.epoch = path.epoch;
  if (path.deadline == Time::never()) set_deadline(path, now + timeout(path));
  refresh(path);
}

uint64_t Ledger::post(Path& path, SendMessage& message, uint32_t segment, bool repair, Time now) {
  const uint64_t number = path.copies.next();
  const auto bytes = static_cast<uint32_t>(message.length(segment));
  Copy& copy = path.copies.append();
  copy.message = message.pool_index;
  copy.message_generation = message.pool_generation;
  copy.segment = segment;
  copy.bytes = std::max(bytes, kLeastBytes);
  copy.repair = repair;
  copy.source_in_use = config_.offloads.places;
  message.sources += copy.source_in_use;
  ++message.unsettled;
  in_flight_ += copy.bytes;
  path.counters.bytes += bytes;
  ++path.counters.packets;
  path.counters.retransmitted += repair;
  retransmitted_ += repair;
  if (repair) law_->on_loss(now, copy.bytes);  // what turns up before was not lost
  enter(path, copy, now);
  return number;
}

uint64_t Ledger::post_probe(Path& path, Time now) {
  const uint64_t number = path.copies.next();
  Copy& copy = path.copies.append();
  copy.probe = true;
  ++path.counters.probes;
  enter(path, copy, now);
  return number;
}

void Ledger::unpost(Path& path, uint64_t number) {
  if (!path.copies.holds(number)) return;
  Copy& copy = path.copies.at(number);
  if (copy.settled) return;
  if (SendMessage* message = copy.probe ? nullptr : find(copy)) {
    path.counters.bytes -= message->length(copy.segment);
    --path.counters.packets;
    path.counters.retransmitted -= copy.repair;
    retransmitted_ -= copy.repair;
    message->sources -= copy.source_in_use;
    if (!copy.repair && copy.segment + 1 == message->next) {
      --message->next;
    } else {
      message->mark_for_repair(copy.segment);
    }
    touched_.push_back(*message);
  }
  copy.source_in_use = false;
  settle(path, copy);
  path.copies.trim();
  refresh(path);
}

void Ledger::source_free(Path& path, uint64_t number) {
  if (!path.copies.holds(number)) return;
  Copy& copy = path.copies.at(number);
  if (!copy.source_in_use) return;
  copy.source_in_use = false;
  if (SendMessage* message = find(copy)) {
    --message->sources;
    touched_.push_back(*message);
  }
  path.copies.trim();
  refresh(path);
}

void Ledger::settle(Path&, Copy& copy) {
  copy.settled = true;
  in_flight_ -= copy.bytes;
  if (copy.probe) return;
  if (SendMessage* message = find(copy)) {
    --message->unsettled;
    touched_.push_back(*message);
  }
}

// A sample that may hold waiting of the peer's own is no evidence of a queue.
Ledger::Sample Ledger::take_sample(Path& path, const Report& report, const Copy& copy,
                                   Duration hold) {
  const Duration rtt = std::max(report.now - copy.sent - hold, Duration{1});
  path.rtt.add(rtt, report.upper_bound);
  rtt_.add(rtt, report.upper_bound);
  const bool whole = copy.bytes * 2 >= config_.segment_bytes;
  pipe_.on_sample(report.now, rtt, report.upper_bound, law_->at_least(), whole);
  Sample sample;
  if (report.upper_bound && rtt > path.rtt.smoothed()) return sample;
  sample.rtt = rtt;
  sample.queue = pipe_.queue_delay(rtt);
  return sample;
}

// What an arrival says of the path and of the others, whatever the copy was held for.
void Ledger::witness(Path& path, uint64_t number, const Report& report) {
  const Copy& copy = path.copies.at(number);
  if (number > path.largest_arrived) {
    path.largest_arrived = number;
    path.arrival_stamp = report.stamp;
  }
  if (copy.sent < newest_arrived_sent_) {
    const Duration lag = report.now - copy.sent - newest_arrived_rtt_;
    reorder_ = std::max(lag, reorder_ - reorder_ / kReorderMemory);
  } else if (copy.sent > newest_arrived_sent_) {
    newest_arrived_sent_ = copy.sent;
    newest_arrived_rtt_ = report.now - copy.sent;
  }
  if (copy.probe) path.probe_arrived = std::max(path.probe_arrived, number);
  if (copy.epoch != path.epoch) return;  // says nothing about the queue pair of today
  path.timeouts = 0;
  path.revivals_tried = 0;
  path.arrived_at = report.now;
  if (path.dead) selector_->on_alive(path.index, true);
  path.dead = false;
}

void Ledger::arrive(Path& path, uint64_t number, const Report& report, Sample& sample) {
  Copy& copy = path.copies.at(number);
  if (copy.suspect) path.ordered = false;
  witness(path, number, report);
  if (!copy.probe) {
    if (SendMessage* message = find(copy)) message->mark_acked(copy.segment);
    (sample.marks > 0 ? sample.marked_bytes : sample.bytes) += copy.bytes;
    sample.marks -= sample.marks > 0;
  }
  settle(path, copy);
}

// It was taken for lost (datagram fabrics). Left out, such arrivals would leave the RTT at what the
// fast ones took, and then all that meet a queue which has grown are lost for ever.
void Ledger::arrive_late(Path& path, uint64_t number, const Report& report) {
  Copy& copy = path.copies.at(number);
  copy.lost = false;
  witness(path, number, report);
  SendMessage* message = copy.probe ? nullptr : find(copy);
  if (!message) return;
  message->mark_acked(copy.segment);
  touched_.push_back(*message);
}

void Ledger::account(Path& path, const Report& report, const Sample& sample) {
  const auto tell = [&](uint64_t bytes, Mark mark) {
    if (bytes == 0) return;
    const double bursts = static_cast<double>(bytes) / burst_bytes();
    law_->on_ack({report.now, bytes, sample.rtt, sample.queue, mark != Mark::kNone, path.index,
                  in_flight_, held_back_});
    selector_->on_ack({path.index, bursts, mark, sample.rtt, report.now});
  };
  pipe_.on_delivered(report.now, sample.bytes + sample.marked_bytes, held_back_);
  tell(sample.marked_bytes, Mark::kEcn);
  tell(sample.bytes, sample.queue > pipe_.mark_delay() ? Mark::kQueue : Mark::kNone);
}

void Ledger::on_path_ack(const Report& report, const wire::PathAck& ack) {
  if (ack.path >= paths_.size()) return;
  Path& path = paths_[ack.path];
  if (config_.offloads.places) {
    // Only probes are acked by path, by the low 16 bits of their number.
    if (ack.epoch != path.epoch) return;
    const uint64_t number = wire::widen(ack.largest, 16, path.copies.next());
    if (!path.copies.holds(number) || !path.copies.at(number).probe ||
        path.copies.at(number).settled)
      return;
    Sample sample = take_sample(path, report, path.copies.at(number), nanoseconds(ack.hold_ns));
    arrive(path, number, report, sample);
  } else {
    if (ack.largest >= path.copies.next()) return;
    Sample sample;
    const auto arrives = [&path](uint64_t number) {
      return path.copies.holds(number) && !path.copies.at(number).settled;
    };
    const auto late = [&path](uint64_t number) {
      return (path.copies.holds(number) || path.copies.remembers(number)) &&
             path.copies.at(number).lost;
    };
    if (arrives(ack.largest) || late(ack.largest)) {
      sample = take_sample(path, report, path.copies.at(ack.largest), nanoseconds(ack.hold_ns));
    }
    // Counts only grow; an old report tells nothing new.
    if (static_cast<int32_t>(ack.marks - path.marks) > 0) {
      sample.marks = ack.marks - path.marks;
      path.marks = ack.marks;
    }
    const uint64_t first = ack.largest + 1 - 64ull * ack.words;
    // Behind the oldest only what was taken for lost is of interest.
    const uint64_t oldest = first < path.lost_below ? wire::kFirstPacket : path.copies.oldest();
    const uint64_t from = std::max(oldest, first);
    for (uint64_t number = from; number <= ack.largest; ++number) {
      const uint64_t k = number - first;
      if (!(ack.bits[k / 64] >> (k % 64) & 1)) continue;
      if (arrives(number)) {
        arrive(path, number, report, sample);
      } else if (late(number)) {
        arrive_late(path, number, report);
      }
    }
    account(path, report, sample);
  }
  path.copies.trim();
  path.deadline = Time::never();
  if (!path.copies.empty() || path.dead) set_deadline(path, report.now + timeout(path));
  refresh(path);
}

void Ledger::sweep(const Report& report, const SendMessage* message, uint32_t latest,
                   Duration hold) {
  for (Path& path : paths_) {
    if (!busy_.test(path.index)) continue;
    bool moved = false;
    for (uint64_t n = path.copies.oldest(); n < path.copies.next(); ++n) {
      Copy& copy = path.copies.at(n);
      if (copy.settled || copy.probe) continue;
      SendMessage* owner = find(copy);
      if (owner && !owner->acked.test(copy.segment)) continue;
      // A datagram's first copy may have come late: then nothing is known of the second yet.
      if (owner && copy.repair && !config_.offloads.places) continue;
      Sample sample;
      if (owner && owner == message && copy.segment == latest && !copy.repair) {
        sample = take_sample(path, report, copy, hold);
      }
      arrive(path, n, report, sample);
      account(path, report, sample);
      moved = true;
    }
    if (!moved) continue;
    path.copies.trim();
    path.deadline = Time::never();
    if (!path.copies.empty() || path.dead) set_deadline(path, report.now + timeout(path));
    refresh(path);
  }
}

Duration Ledger::smoothed_rtt() const {
  return rtt_.known() ? rtt_.smoothed() : config_.initial_rtt;
}

}  // namespace weft
