// SPDX-License-Identifier: Apache-2.0
// Handing over what the two ends transmit, and turning them.
#include "tests/unit/connection/pair.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/wire/immediate.h"

namespace weft::test {

bool Parcel::is_probe() const {
  if (control) return false;
  if (segment.header_bytes != 0) return segment.header_bytes == wire::kProbeBytes;
  return wire::decode_immediate(segment.immediate).kind == wire::ImmediateKind::kProbe;
}

Pair::Pair(Offloads o, std::function<void(ConnectionConfig&)> adjust) : offloads(o) {
  for (int h = 0; h < 2; ++h) {
    ConnectionConfig c;
    c.offloads = offloads;
    c.paths = 4;
    c.seed = static_cast<uint64_t>(h + 1);
    c.peer = {static_cast<uint32_t>(2 - h), 99};
    c.segment_bytes = c.peer_segment_bytes = 1024;
    c.burst_bytes = 4096;
    c.timer_floor = microseconds(500);
    c.initial_rtt = microseconds(100);
    if (adjust) adjust(c);
    end[h] = std::make_unique<Connection>(c);
    outbox_[h] = std::make_unique<Outbox>();
  }
}

FlowId Pair::open_flow(int from) {
  FlowId id = 0;
  if (!end[1 - from]->open_receive_flow(&id) || !end[from]->open_send_flow(id)) return ~0u;
  matchers_[from].emplace_back(id, std::make_unique<Matcher>());
  return id;
}

Pair::Buffer* Pair::buffer(int host, size_t bytes, std::byte fill) {
  buffers_.push_back(std::make_unique<Buffer>());
  Buffer* b = buffers_.back().get();
  b->bytes.assign(std::max<size_t>(bytes, 1), fill);
  const uint64_t key = 7;
  if (!end[host]->add_region(b->base(), b->bytes.size(), {&key, 1}, &b->region)) return nullptr;
  return b;
}

bool Pair::receive(int host, FlowId flow, Buffer* to, int32_t tag, Token token) {
  const ReceivePart part{to->base(), to->bytes.size(), to->region, tag};
  return end[host]->post_receive(flow, {&part, 1}, token);
}

bool Pair::send(int host, FlowId flow, Buffer* from, size_t bytes, int32_t tag, Token token,
                const TrafficHints& hints) {
  for (auto& [id, matcher] : matchers_[host]) {
    Matcher::Match match;
    if (id != flow || matcher->match(tag, bytes, &match) != Matcher::Answer::kMatched) continue;
    return end[host]->post_send(
        {flow, match.number, match.part, from->base(), bytes, 0, from->region, token, hints});
  }
  return false;
}

void Pair::transmit(int host) {
  Outbox& out = *outbox_[host];
  for (int round = 0; round < 1000; ++round) {
    end[host]->poll_transmit(now, out);
    if (out.empty()) return;
    for (size_t i = 0; i < out.commands; ++i) kills.emplace_back(host, out.command[i]);
    for (size_t i = 0; i < out.controls; ++i) {
      Parcel p;
      p.from = host;
      p.control = true;
      p.packet = out.control[i];
      wire.push_back(p);
      history.push_back(p);
    }
    for (size_t i = 0; i < out.segments; ++i) {
      Parcel p;
      p.from = host;
      p.segment = out.segment[i];
      if (p.segment.bytes > 0)
        p.payload.assign(p.segment.source, p.segment.source + p.segment.bytes);
      if (p.segment.header_bytes == wire::kDataHeaderBytes) {
        std::vector<std::byte> whole(p.segment.header.begin(), p.segment.header.end());
        whole.insert(whole.end(), p.payload.begin(), p.payload.end());
        wire::decode_data(whole, &p.header);
      }
      wire.push_back(p);
      history.push_back(p);
      if (offloads.places) held.emplace_back(host, p.segment.cookie);
    }
  }
}

void Pair::turn(int host) {
  if (end[host]->poll_timeout() <= now) end[host]->handle_timeout(now);
  transmit(host);
  if (carry_out_kills) {
    for (auto& [h, command] : std::exchange(kills, {})) {
      if (command.what == PathCommand::What::kKill)
        end[h]->handle_path_killed(now, command.path, command.epoch);
    }
  }
  if (!hold_completions) {
    for (auto& [h, cookie] : std::exchange(held, {})) end[h]->handle_completion(cookie);
  }
  Event event;
  while (end[host]->poll_event(&event)) {
    events_[host].push_back(event);
    if (event.kind != Event::Kind::kGranted) continue;
    for (auto& [id, matcher] : matchers_[host]) {
      if (id == event.flow) matcher->add(event.grant);
    }
  }
}

void Pair::hand_over(const Parcel& p) {
  Connection& to = *end[1 - p.from];
  if (p.control) {
    to.handle_control(now, std::span(p.packet.data).first(p.packet.bytes));
  } else if (offloads.places) {
    if (p.segment.bytes > 0) {
      std::memcpy(reinterpret_cast<void*>(p.segment.remote_address), p.payload.data(),
                  p.payload.size());
    }
    to.handle_landing(now, p.segment.path, p.segment.epoch, p.segment.immediate, p.segment.bytes);
  } else if (p.is_probe()) {
    wire::ProbeHeader probe;
    if (wire::decode_probe(std::span(p.segment.header).first(wire::kProbeBytes), &probe)) {
      to.handle_probe(now, probe, false);
    }
  } else if (std::byte* at = to.claim(now, p.header)) {
    if (!p.payload.empty()) std::memcpy(at, p.payload.data(), p.payload.size());
    to.handle_arrival(now, p.header, false);
  }
}

size_t Pair::deliver() {
  const std::deque<Parcel> under_way = std::exchange(wire, {});
  for (const Parcel& p : under_way) {
    if (!lose(p)) hand_over(p);
  }
  return under_way.size();
}

void Pair::settle() {
  for (int i = 0; i < 1000; ++i) {
    turn(0);
    turn(1);
    if (deliver() == 0 && kills.empty()) return;
  }
}

bool Pair::run(const std::function<bool()>& done, Duration limit) {
  const Time end_of_patience = now + limit;
  while (!done()) {
    settle();
    if (done()) return true;
    const Time next = earlier(end[0]->poll_timeout(), end[1]->poll_timeout());
    if (next > end_of_patience) return false;
    now = std::max(next, now + microseconds(1));
  }
  return true;
}

std::vector<Event> Pair::events(int host, Event::Kind kind) const {
  std::vector<Event> out;
  std::copy_if(events_[host].begin(), events_[host].end(), std::back_inserter(out),
               [kind](const Event& e) { return e.kind == kind; });
  return out;
}

}  // namespace weft::test
