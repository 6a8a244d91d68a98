// SPDX-License-Identifier: Apache-2.0
// Making traffic, moving time, and checking every byte.
#include "tests/sim/world.h"

#include <algorithm>
#include <cstring>

namespace weft::test {
namespace {

constexpr std::byte kUntouched{0xa5};
constexpr std::byte kPoison{0x5a};

std::byte pattern_at(uint64_t pattern, uint64_t i) {
  uint64_t z = (pattern + i / 8) * 0x9e3779b97f4a7c15u;
  z ^= z >> 29;
  return static_cast<std::byte>(z >> (8 * (i % 8)));
}

ConnectionConfig config_of(const sim::SimNetwork& network, Fabric& fabric, const Traffic& traffic,
                           uint64_t seed) {
  ConnectionConfig c;
  c.offloads = fabric.offloads();
  c.peer = {7, 0x1234567890abcdef};
  c.paths = network.config().paths;
  c.segment_bytes = c.peer_segment_bytes = traffic.segment_bytes;
  c.burst_bytes = 4 * traffic.segment_bytes;
  c.window_bytes = traffic.window_bytes;
  c.law = traffic.law, c.selector = traffic.selector;
  c.timer_floor = microseconds(200);
  c.max_hold = microseconds(20);
  c.initial_rtt = microseconds(100);
  c.seed = seed;
  return c;
}

}  // namespace

World::World(const sim::SimConfig& network, const Traffic& traffic, uint64_t seed)
    : traffic_(traffic), random_(seed ^ 0x77656674), network_(network, seed) {
  std::array<LinkAddress, 2> addresses;
  std::array<LinkId, 2> links{};
  for (int h = 0; h < 2; ++h) links[h] = *network_.host(h).create_link(&addresses[h]);
  for (int h = 0; h < 2; ++h) {
    if (!network_.host(h).connect_link(links[h], addresses[1 - h]).ok())
      blame("cannot connect the link");
    hosts_[h] = std::make_unique<Pump>(network_.host(h), links[h],
                                       config_of(network_, network_.host(h), traffic, seed + h));
    hosts_[h]->on_event = [this, h](const Event& e) { on_event(h, e); };
  }
  for (int i = 0; i < traffic_.flows; ++i) {
    make_flow(0);
    make_flow(1);
  }
}

World::Buffer* World::make_buffer(int host, uint64_t room) {
  auto buffer = std::make_unique<Buffer>();
  buffer->memory.assign(room + 2 * kGuard, kUntouched);
  buffer->room = room;
  buffers_[host].push_back(std::move(buffer));
  Buffer* b = buffers_[host].back().get();
  const auto keys = network_.host(host).register_memory({b->base(), std::max<uint64_t>(room, 1)});
  const uint64_t remote = keys.ok() ? keys->remote : 0;
  RegionId id = 0;
  if (!hosts_[host]->connection.add_region(b->base(), std::max<uint64_t>(room, 1), {&remote, 1},
                                           &id)) {
    blame("cannot add a region");
  }
  region_of_[host].push_back({b, {id, keys.ok() ? *keys : MemoryKeys{}}});
  return b;
}

void World::make_flow(int from) {
  auto flow = std::make_unique<Flow>();
  flow->from = from;
  if (!hosts_[1 - from]->connection.open_receive_flow(&flow->id) ||
      !hosts_[from]->connection.open_send_flow(flow->id)) {
    blame("cannot open a flow");
  }
  for (int m = 0; m < traffic_.messages;) {
    const int parts =
        traffic_.grouped && random_.chance(0.2) ? 2 + static_cast<int>(random_.below(7)) : 1;
    PostedReceive receive;
    std::vector<PendingSend> sends;
    for (int i = 0; i < parts; ++i, ++m) {
      uint64_t bytes = random_.below(traffic_.largest + 1);
      const uint64_t kind = random_.below(8);
      if (kind == 0) bytes = 0;
      if (kind <= 3) bytes = random_.below(2 * traffic_.segment_bytes);
      const uint64_t room = bytes + (random_.chance(0.5) ? random_.below(4096) : 0);
      const uint64_t pattern = random_.next();
      const auto tag = static_cast<int32_t>(random_.below(3));
      sends.push_back({make_buffer(from, bytes), bytes, tag, pattern});
      for (uint64_t k = 0; k < bytes; ++k) sends.back().source->base()[k] = pattern_at(pattern, k);
      receive.parts.push_back({make_buffer(1 - from, room), tag, bytes, pattern});
      bytes_ += bytes;
      ++messages_;
    }
    // Sends of one group may come in any order that the tags allow: those of equal tag stay in
    // order.
    std::stable_sort(sends.begin(), sends.end(),
                     [](const PendingSend& a, const PendingSend& b) { return a.tag > b.tag; });
    for (const PendingSend& s : sends) flow->to_send.push_back(s);
    flow->to_receive.push_back(std::move(receive));
  }
  flow->sends = flow->to_send.size();
  flows_.push_back(std::move(flow));
}

void World::post_some(Time now) {
  for (auto& f : flows_) {
    Connection& receiver = hosts_[1 - f->from]->connection;
    while (f->receives_posted < f->to_receive.size() && f->next_post <= now) {
      PostedReceive& r = f->to_receive[f->receives_posted];
      std::vector<ReceivePart> parts;
      for (Part& p : r.parts) {
        RegionId region = 0;
        for (auto& [buffer, id] : region_of_[1 - f->from]) {
          if (buffer == p.buffer) region = id.first;
        }
        parts.push_back({p.buffer->base(), p.buffer->room, region, p.tag});
      }
      if (!receiver.post_receive(f->id, parts, f->receives_posted)) {
        f->next_post = now + traffic_.post_gap;  // full: later
        break;
      }
      ++f->receives_posted;
      f->next_post =
          now + nanoseconds(static_cast<int64_t>(random_.below(traffic_.post_gap.ns + 1)));
    }
    send_some(*f, now);
  }
}

void World::send_some(Flow& f, Time now) {
  while (!f.to_send.empty() && f.next_send <= now) {
    const PendingSend& s = f.to_send.front();
    Matcher::Match match;
    const auto answer = f.matcher.match(s.tag, s.bytes, &match);
    if (answer == Matcher::Answer::kTooLarge)
      return blame("a send was matched to too small a receive");
    if (answer == Matcher::Answer::kNotYet) return;
    MatchedSend send{f.id,       match.number,
                     match.part, s.source->base(),
                     s.bytes,    0,
                     0,          reinterpret_cast<Token>(s.source)};
    for (auto& [buffer, id] : region_of_[f.from]) {
      if (buffer == s.source) send.region = id.first, send.local_key = id.second.local;
    }
    if (!hosts_[f.from]->connection.post_send(send)) return blame("a matched send was refused");
    f.to_send.pop_front();
    f.next_send =
        now + nanoseconds(static_cast<int64_t>(random_.below(traffic_.post_gap.ns / 4 + 1)));
  }
}

void World::on_event(int host, const Event& e) {
  for (auto& f : flows_) {
    const int at = e.role == wire::FlowRole::kSender ? f->from : 1 - f->from;
    if (at != host || f->id != e.flow) continue;
    switch (e.kind) {
      case Event::Kind::kGranted:
        if (f->matcher.full()) return blame("more grants than a flow may have");
        f->matcher.add(e.grant);
        return;
      case Event::Kind::kSent: {
        auto* source = reinterpret_cast<Buffer*>(e.token);
        if (source->released) return blame("a send was reported twice");
        source->released = true;
        std::fill(source->memory.begin(), source->memory.end(), kPoison);
        ++f->sends_done;
        return;
      }
      case Event::Kind::kReceived:
        if (e.token >= f->receives_posted)
          return blame("a receive that was never posted was reported");
        check_received(f->to_receive[e.token], e);
        ++f->receives_done;
        return;
      case Event::Kind::kFlowFailed:
        return blame(std::string("a flow failed: ") + describe(e.failure));
    }
  }
  blame("an event names a flow that is not there");
}

void World::check_received(PostedReceive& receive, const Event& e) {
  if (receive.reported) return blame("a receive was reported twice");
  receive.reported = true;
  if (e.parts != receive.parts.size()) return blame("a receive has the wrong number of parts");
  for (size_t i = 0; i < receive.parts.size(); ++i) {
    Part& p = receive.parts[i];
    if (e.sizes[i] != p.sent_bytes) return blame("a receive has the wrong size");
    for (uint64_t k = 0; k < p.sent_bytes; ++k) {
      if (p.buffer->base()[k] != pattern_at(p.pattern, k)) {
        return blame("flow " + std::to_string(e.flow) + " message " + std::to_string(e.number) +
                     " part " + std::to_string(i) + ": wrong byte " + std::to_string(k) + " of " +
                     std::to_string(p.sent_bytes));
      }
    }
    auto& m = p.buffer->memory;
    const auto rest = m.begin() + static_cast<std::ptrdiff_t>(kGuard + p.sent_bytes);
    const auto clean = [](std::byte b) { return b == kUntouched; };
    if (!std::all_of(m.begin(), m.begin() + kGuard, clean) || !std::all_of(rest, m.end(), clean)) {
      return blame("bytes outside a message were written");
    }
    std::fill(m.begin(), m.end(), kPoison);
    p.buffer->released = true;
  }
}

void World::check_poison() {
  for (auto& host : buffers_) {
    for (auto& b : host) {
      if (!b->released) continue;
      if (!std::all_of(b->memory.begin(), b->memory.end(),
                       [](std::byte x) { return x == kPoison; })) {
        return blame("a buffer was written after it was released");
      }
    }
  }
}

void World::blame(const std::string& words) {
  if (fault_.empty()) fault_ = words + ", at " + std::to_string(network_.now().ns / 1000) + " us";
}

bool World::done() const {
  return std::all_of(flows_.begin(), flows_.end(), [](const auto& f) {
    return f->receives_done == f->to_receive.size() && f->sends_done == f->sends;
  });
}

bool World::both_quiet() const {
  return hosts_[0]->connection.quiet() && hosts_[1]->connection.quiet() &&
         network_.in_flight() == 0;
}

Time World::next_application_event() const {
  Time at = Time::never();
  for (auto& f : flows_) {
    if (f->receives_posted < f->to_receive.size()) at = earlier(at, f->next_post);
    if (!f->to_send.empty() && !f->matcher.empty()) at = earlier(at, f->next_send);
  }
  return at;
}

bool World::drive_until(Time limit, bool (World::*over)() const) {
  while (fault_.empty() && !(this->*over)()) {
    const Time now = network_.now();
    post_some(now);
    for (int h = 0; h < 2; ++h) {
      if (!network_.paused(h)) hosts_[h]->drive(now);
    }
    Time next = earlier(network_.next_event(), next_application_event());
    for (int h = 0; h < 2; ++h) {
      if (!network_.paused(h)) next = earlier(next, hosts_[h]->deadline());
    }
    if (network_.paused(0) || network_.paused(1)) next = earlier(next, now + milliseconds(1));
    if (next == Time::never() || next > limit) {
      if ((this->*over)()) return true;
      return false;
    }
    network_.advance_to(std::max(next, now + nanoseconds(500)));
  }
  return fault_.empty();
}

Outcome World::run() {
  Outcome out;
  const bool complete = drive_until(network_.now() + traffic_.bound, &World::done);
  if (!complete && fault_.empty()) {
    blame("not everything was delivered within the bound: host 0 has " +
          hosts_[0]->connection.describe(network_.now()) + "; host 1 has " +
          hosts_[1]->connection.describe(network_.now()));
  }
  out.took = network_.now() - Time{};
  if (fault_.empty()) {
    for (auto& f : flows_) {
      hosts_[f->from]->connection.close_send_flow(f->id);
      hosts_[1 - f->from]->connection.close_receive_flow(f->id);
    }
    if (!drive_until(network_.now() + seconds(20), &World::both_quiet) && fault_.empty()) {
      blame("the connections did not fall silent: host 0 has " +
            hosts_[0]->connection.describe(network_.now()) + "; host 1 has " +
            hosts_[1]->connection.describe(network_.now()));
    }
  }
  if (fault_.empty()) check_poison();
  out.finished = fault_.empty();
  if (network_.counters().violations > 0 && fault_.empty()) blame(network_.first_violation());
  out.fault = fault_;
  out.trace_hash = network_.trace_hash();
  out.network = network_.counters();
  out.messages = messages_;
  out.bytes = bytes_;
  for (auto& h : hosts_) {
    out.retransmitted += h->connection.segments_retransmitted();
    out.lost += h->connection.segments_lost();
  }
  return out;
}

}  // namespace weft::test
