// SPDX-License-Identifier: Apache-2.0
// What becomes of a post: drawn here, once, when it is posted.
#include <algorithm>
#include <cstring>

#include "transport/sim/network.h"

namespace weft::sim {

size_t SimNetwork::admit(size_t batch) {
  size_t take = batch;
  if (config_.max_posts_per_call != 0) take = std::min(take, config_.max_posts_per_call);
  if (config_.faults.refuse > 0 && random_.chance(config_.faults.refuse))
    take = random_.below(take + 1);
  return std::min(take, config_.max_in_flight - std::min(config_.max_in_flight, packets_.in_use()));
}

// Null, counted, when the link or path does not make sense.
Packet* SimNetwork::take_packet(int from, LinkId link, PathIndex path) {
  Host& host = hosts_[static_cast<size_t>(from)];
  if (!host.path(link, path) || !host.link(link)->connected) {
    violation(from, "a post on a link that is not connected or has no such path");
    return nullptr;
  }
  Packet* p = packets_.take();
  if (!p) return nullptr;  // admit() sees to it that there is one
  const uint32_t index = p->pool_index, generation = p->pool_generation;
  std::vector<std::byte> bytes = std::move(p->bytes);
  bytes.clear();
  *p = Packet{};
  p->pool_index = index, p->pool_generation = generation;
  p->bytes = std::move(bytes);
  p->from = static_cast<uint8_t>(from);
  p->link = link;
  p->peer_link = host.link(link)->peer;
  p->path = path;
  p->order = ++posted_;
  p->place = all_packets_.size();
  all_packets_.push_back(p);
  return p;
}

void SimNetwork::schedule(Time at, EventKind kind, Packet& p) {
  ++p.holders;
  queue_.push({at, 0, kind, p.from, p.path, p.link, p.epoch, &p});
}

void SimNetwork::send_datagram(Packet& p, const Chances& chances) {
  const SimFaults& f = config_.faults;
  p.marked = random_.chance(f.mark);
  Time at = now_ + weather_.up_to(config_.nic_delay) + weather_.one_way(p.path, now_);
  if (random_.chance(chances.reorder)) at = at + weather_.up_to(f.reorder_by);
  const bool again = random_.chance(chances.duplicate);
  ++p.holders;  // ours, until the copies are scheduled
  if (random_.chance(chances.loss) || weather_.in_hole(p.from, p.path, now_)) {
    ++counters_.lost;
  } else {
    schedule(at, EventKind::kDatagram, p);
  }
  if (again && !weather_.in_hole(p.from, p.path, now_)) {
    ++counters_.duplicated;
    schedule(at + weather_.up_to(f.duplicate_by), EventKind::kDatagram, p);
  }
  drop_holder(p);
}

void SimNetwork::post_datagram(int from, Time now, const SegmentPost& post) {
  now_ = std::max(now_, now);
  ++counters_.posted;
  if (post.header_bytes > kMaxSegmentHeader || post.bytes > config_.max_segment_bytes ||
      (post.bytes != 0 && !post.source)) {
    return violation(
        from, "a datagram with a longer header or payload than the fabric takes, or no source");
  }
  Packet* p = take_packet(from, post.link, post.path);
  if (!p) return;
  const std::byte* header = post.header.data();
  p->bytes.assign(header, header + post.header_bytes);
  if (post.bytes != 0) p->bytes.insert(p->bytes.end(), post.source, post.source + post.bytes);
  send_datagram(*p, {config_.faults.loss, config_.faults.duplicate, config_.faults.reorder});
}

void SimNetwork::post_control(int from, Time now, const ControlPost& post) {
  now_ = std::max(now_, now);
  ++counters_.control_posted;
  if (post.bytes > kMaxControlBytes)
    return violation(from, "a control datagram longer than the fabric takes");
  Packet* p = take_packet(from, post.link, post.path);
  if (!p) return;
  p->bytes.assign(post.data.data(), post.data.data() + post.bytes);
  const SimFaults& f = config_.faults;
  if (config_.mode == Mode::kPlacing) {
    send_datagram(*p, {f.control_loss, f.control_duplicate, f.control_reorder});
  } else {
    send_datagram(*p, {f.loss, f.duplicate, f.reorder});
  }
}

void SimNetwork::post_write(int from, Time now, const SegmentPost& post) {
  now_ = std::max(now_, now);
  ++counters_.posted;
  Host& host = hosts_[static_cast<size_t>(from)];
  if (post.bytes > config_.max_segment_bytes || (post.bytes != 0 && !post.source)) {
    return violation(from, "a write that is longer than the fabric takes, or has no source");
  }
  if (post.bytes != 0 && !host.regions().may_read(post.local_key, post.source, post.bytes)) {
    return violation(from, "a write whose source is not in the region of its local key");
  }
  Packet* p = take_packet(from, post.link, post.path);
  if (!p) return;
  p->is_write = true;
  p->source = post.source;
  p->size = post.bytes;
  p->local_key = post.local_key;
  p->epoch = post.epoch;
  p->immediate = post.immediate;
  p->remote_address = post.remote_address;
  p->remote_key = post.remote_key;
  p->cookie = post.cookie;
  PathEnd& path = *host.path(post.link, post.path);
  if (!path.open || path.broken || path.epoch != post.epoch) {
    // As a queue pair in ERR does: flushed at once, in order with what was posted before.
    if (path.epoch < post.epoch)
      violation(from, "a write on an epoch that was not yet opened here");
    ++counters_.flushed;
    schedule(now_, EventKind::kComplete, *p);
    return;
  }
  draw_write(*p, path);
}

void SimNetwork::draw_write(Packet& p, PathEnd& path) {
  const Time departure = now_ + weather_.up_to(config_.nic_delay);
  const Time arrival = draw_arrival(p, path, departure);
  if (!config_.reliable) draw_loss(p, departure);

  // A reliable NIC may read the source again until the other end has it, so its last read may be
  // then.
  const Time last_read = config_.reliable ? arrival : departure;
  schedule(now_ + weather_.up_to(last_read - now_), EventKind::kRead, p);
  const bool breaks = config_.reliable && random_.chance(config_.faults.break_path);
  const bool before = breaks && random_.chance(0.5);
  const Event broken{arrival, 0, EventKind::kBreak, p.from, p.path, p.link, p.epoch, nullptr};
  if (breaks && before) queue_.push(broken);
  const Time through = weather_.open_from(p.from, p.path, departure);
  if (config_.reliable && through - departure >= config_.retry_timeout) {
    p.lost = true;
    ++counters_.lost;
    Event gives_up = broken;
    gives_up.at = departure + config_.retry_timeout;
    queue_.push(gives_up);
  } else {
    schedule(arrival, EventKind::kLand, p);
  }
  if (breaks && !before) queue_.push(broken);

  const Time told = config_.reliable ? arrival + weather_.one_way(p.path, arrival)
                                     : departure + weather_.up_to(config_.nic_delay);
  path.last_completion = std::max(path.last_completion, told);
  path.last_post = now_;
  schedule(path.last_completion, EventKind::kComplete, p);
  if (config_.ordered_path) path.last_arrival = arrival;
}

Time SimNetwork::draw_arrival(const Packet& p, const PathEnd& path, Time departure) {
  const SimFaults& f = config_.faults;
  Time start = departure;
  if (config_.reliable) {
    // The NIC repeats it until the hole ends; if that takes too long, draw_write lets the path
    // break.
    const Time through = weather_.open_from(p.from, p.path, departure);
    if (through - departure < config_.retry_timeout) start = through;
  }
  Time arrival = start + weather_.one_way(p.path, now_);
  if (random_.chance(f.late)) {
    ++counters_.late;
    const Duration bound = weather_.base_delay(p.path, now_) * 2;
    arrival =
        arrival + weather_.up_to(config_.ordered_path ? std::min(f.late_by, bound) : f.late_by);
  }
  const bool same_way = !weather_.rehashed_between(p.path, path.last_post, now_);
  if (config_.ordered_path && same_way) arrival = std::max(arrival, path.last_arrival);
  return arrival;
}

void SimNetwork::draw_loss(Packet& p, Time departure) {
  p.lost = random_.chance(config_.faults.loss);
  if (p.lost && config_.faults.partial_writes && p.size != 0) {
    p.lost_prefix = static_cast<uint32_t>(random_.below(p.size));
  }
  if (weather_.in_hole(p.from, p.path, departure)) p.lost = true, p.lost_prefix = 0;
  if (p.lost) ++counters_.lost;
}

}  // namespace weft::sim
