// SPDX-License-Identifier: Apache-2.0
// What happens in the simulated network, event by event. What is drawn when something is posted:
// posting.cc.
#include "transport/sim/network.h"

#include <algorithm>
#include <cstring>

#include "transport/sim/sim_fabric.h"

namespace weft::sim {
namespace {

SimConfig sane(SimConfig c) {
  c.paths = std::clamp(c.paths, 1, kMaxPaths);
  const uint32_t largest = c.mode == Mode::kPlacing ? 65536 : 1408;
  if (c.max_segment_bytes == 0) c.max_segment_bytes = largest;
  c.max_segment_bytes =
      std::clamp(c.max_segment_bytes / kLineBytes * kLineBytes, kLineBytes, uint32_t{65536});
  c.max_in_flight = std::clamp(c.max_in_flight, size_t{1}, kMaxPackets);
  if (c.mode == Mode::kDatagram) c.ordered_path = c.reliable = false;
  if (c.reliable) c.ordered_path = true;
  return c;
}

}  // namespace

SimNetwork::SimNetwork(const SimConfig& config, uint64_t seed, Memory* memory)
    : config_(sane(config)),
      random_(seed),
      weather_(config_, random_),
      memory_(memory ? memory : &host_memory_),
      hosts_{Host(0, config_), Host(1, config_)} {
  for (int i : {0, 1}) fabrics_[static_cast<size_t>(i)] = std::make_unique<SimFabric>(*this, i);
}

SimNetwork::~SimNetwork() = default;

Fabric& SimNetwork::host(int number) { return *fabrics_[number == 0 ? 0 : 1]; }

size_t SimNetwork::pending(int number) const { return hosts_[number == 0 ? 0 : 1].inbox_size(); }

void SimNetwork::mix(uint64_t value) {
  hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15u;
  hash_ ^= hash_ >> 29;
}

void SimNetwork::violation(int host, const char* what) {
  ++counters_.violations;
  if (!first_violation_.empty()) return;
  first_violation_ =
      "host " + std::to_string(host) + " at " + std::to_string(now_.ns) + " ns: " + what;
}

void SimNetwork::advance_to(Time time) {
  while (!queue_.empty() && queue_.next() <= time) {
    const Event event = queue_.pop();
    if (event.at > now_) now_ = event.at;
    happen(event);
  }
  if (time > now_) now_ = time;
}

void SimNetwork::happen(const Event& e) {
  mix(static_cast<uint64_t>(e.at.ns));
  const uint64_t size = e.packet ? (e.packet->size ? e.packet->size : e.packet->bytes.size()) : 0;
  mix(uint64_t{e.host} << 56 | static_cast<uint64_t>(e.kind) << 48 | uint64_t{e.path} << 32 |
      (size & 0xffffffffu));
  mix(uint64_t{e.link} << 32 | e.epoch);
  switch (e.kind) {
    case EventKind::kDatagram: arrive(*e.packet); break;
    case EventKind::kRead: read_source(*e.packet); break;
    case EventKind::kComplete: complete(*e.packet); break;
    case EventKind::kLand: land(*e.packet); break;
    case EventKind::kKill: carry_out_kill(e); break;
    case EventKind::kBreak: break_path(e); break;
  }
  if (e.packet) drop_holder(*e.packet);
}

void SimNetwork::drop_holder(Packet& packet) {
  if (--packet.holders > 0) return;
  Packet* last = all_packets_.back();
  all_packets_[packet.place] = last;
  last->place = packet.place;
  all_packets_.pop_back();
  packets_.release(packet);
}

void SimNetwork::arrive(Packet& p) {
  if (weather_.in_hole(p.from, p.path, now_)) {
    ++counters_.lost;
    return;
  }
  Host& host = hosts_[1u - p.from];
  if (host.datagrams_held() >= config_.receive_datagrams) {
    ++counters_.overruns;
    ++counters_.lost;
    return;
  }
  ++counters_.arrived;
  host.push_datagram(p);
}

void SimNetwork::read_source(Packet& p) {
  if (p.completed) return;  // flushed
  if (p.size != 0 && !hosts_[p.from].regions().may_read(p.local_key, p.source, p.size)) {
    violation(p.from,
              "a write's source is not in the region of its local key when the NIC reads it");
    p.lost = true, p.lost_prefix = 0;
  } else {
    p.bytes.assign(p.source, p.source + p.size);
  }
  p.read = true;
}

void SimNetwork::complete(Packet& p) {
  if (p.completed) return;
  p.completed = true;
  if (hosts_[p.from].link(p.link)) hosts_[p.from].push_completion(p.link, p.cookie);
}

void SimNetwork::land(Packet& p) {
  const int to = 1 - p.from;
  Host& host = hosts_[static_cast<size_t>(to)];
  const uint32_t bytes = p.lost ? p.lost_prefix : p.size;
  if (!p.read || (p.lost && bytes == 0)) return;
  if (!config_.reliable && !p.lost && weather_.in_hole(p.from, p.path, now_)) {
    ++counters_.lost;
    return;
  }
  PathEnd* end = host.path(p.peer_link, p.path);
  const LinkEnd* link = host.link(p.peer_link);
  if (!end || !link->connected || link->peer != p.link || !end->open || end->epoch != p.epoch) {
    ++counters_.killed;
    return;
  }
  if (p.size != 0 && !host.regions().may_write(p.remote_key, p.remote_address, p.size)) {
    violation(to, "a write's remote key or range is not registered there");
    return;
  }
  if (!p.lost && config_.receive_depth != 0 && end->landings_held >= config_.receive_depth) {
    ++counters_.overruns;
    ++counters_.lost;
    return;
  }
  if (bytes != 0) std::memcpy(reinterpret_cast<void*>(p.remote_address), p.bytes.data(), bytes);
  if (p.lost) return;
  ++counters_.arrived;
  host.push_landing({p.peer_link, p.path, p.epoch, p.immediate, bytes});
}

void SimNetwork::flush(int from, LinkId link, PathIndex path, uint32_t epoch, bool report) {
  // In the order of posting, as a queue pair flushes.
  std::vector<Packet*> open;
  for (Packet* p : all_packets_) {
    const bool here =
        p->from == from && p->link == link && p->path == path && p->epoch == epoch && p->is_write;
    if (here && !p->completed) open.push_back(p);
  }
  std::sort(open.begin(), open.end(),
            [](const Packet* a, const Packet* b) { return a->order < b->order; });
  for (Packet* p : open) {
    p->completed = true;
    if (!p->read) ++counters_.flushed;
    // A reliable NIC repeats what it has read no more: whether it lands depends on its last copy.
    if (p->read && config_.reliable && !p->lost && random_.chance(0.5)) {
      p->lost = true, p->lost_prefix = 0;
      ++counters_.lost;
    }
    if (report) hosts_[static_cast<size_t>(from)].push_completion(link, p->cookie);
  }
}

void SimNetwork::carry_out_kill(const Event& e) {
  Host& host = hosts_[e.host];
  PathEnd* end = host.path(e.link, e.path);
  if (!end) return;  // closed meanwhile
  end->killed_below = std::max(end->killed_below, uint64_t{e.epoch} + 1);
  if (end->open && end->epoch == e.epoch) {
    end->open = false;
    flush(e.host, e.link, e.path, e.epoch, true);
  }
  host.push_change({e.link, e.path, e.epoch, PathChange::What::kKilled});
}

void SimNetwork::break_path(const Event& e) {
  PathEnd* end = hosts_[e.host].path(e.link, e.path);
  if (!end || !end->open || end->broken || end->epoch != e.epoch) return;
  ++counters_.broken;
  const auto break_end = [&](int number, LinkId link) {
    PathEnd* here = hosts_[static_cast<size_t>(number)].path(link, e.path);
    if (!here || !here->open || here->epoch != e.epoch || here->broken) return;
    here->broken = true;
    flush(number, link, e.path, e.epoch, true);
    hosts_[static_cast<size_t>(number)].push_change(
        {link, e.path, e.epoch, PathChange::What::kBroken});
  };
  break_end(e.host, e.link);
  break_end(1 - e.host, hosts_[e.host].link(e.link)->peer);
}

void SimNetwork::kill_path(int from, LinkId link, PathIndex path, uint32_t epoch) {
  if (config_.mode == Mode::kDatagram) return;
  if (!hosts_[static_cast<size_t>(from)].path(link, path))
    return violation(from, "kill_path of no path");
  const Time at = now_ + nanoseconds(1) + weather_.up_to(config_.faults.kill_within);
  queue_.push({at, 0, EventKind::kKill, static_cast<uint8_t>(from), path, link, epoch, nullptr});
}

void SimNetwork::reopen_path(int from, LinkId link, PathIndex path, uint32_t epoch) {
  if (config_.mode == Mode::kDatagram) return;
  PathEnd* end = hosts_[static_cast<size_t>(from)].path(link, path);
  if (!end) return violation(from, "reopen_path of no path");
  if (end->open && end->epoch == epoch) return;
  if (end->open) return violation(from, "reopen_path while an older epoch is open");
  if (epoch < end->killed_below) return violation(from, "reopen_path of an epoch that was killed");
  PathEnd fresh;
  fresh.open = true;
  fresh.epoch = epoch;
  fresh.killed_below = end->killed_below;
  fresh.landings_held = end->landings_held;
  *end = fresh;
}

void SimNetwork::close_link(int from, LinkId link) {
  Host& host = hosts_[static_cast<size_t>(from)];
  LinkEnd* end = host.link(link);
  if (!end) return;
  for (size_t i = 0; i < end->paths.size(); ++i) {
    flush(from, link, static_cast<PathIndex>(i), end->paths[i].epoch, false);
  }
  end->closed = true;
  host.forget_link(link);
}

}  // namespace weft::sim
