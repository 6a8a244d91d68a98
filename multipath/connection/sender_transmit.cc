// SPDX-License-Identifier: Apache-2.0
// Who goes next, on which path, in what words.
#include <algorithm>

#include "multipath/connection/sender.h"
#include "transport/wire/immediate.h"

namespace weft {
namespace {

// A post's cookie names its copy: the path, and the copy's number on it.
constexpr int kNumberBits = 48;
constexpr uint64_t cookie_of(PathIndex path, uint64_t number) {
  return uint64_t{path} << kNumberBits | number;
}
constexpr PathIndex path_of(uint64_t cookie) {
  return static_cast<PathIndex>(cookie >> kNumberBits);
}
constexpr uint64_t number_of(uint64_t cookie) {
  return cookie & ((uint64_t{1} << kNumberBits) - 1);
}

}  // namespace

// Urgent messages first; then the flow whose turn it is, its oldest message.
SendMessage* Sender::next_message() {
  if (SendMessage* m = urgent_.front()) return m;
  SendFlowState* f = turns_.front();
  return f ? f->ready.front() : nullptr;
}

void Sender::transmit(Time now, Outbox& out) {
  ledger_.set_wanted(open_messages_ > 0, now);
  transmit_probes(now, out);
  while (!out.segments_full() && ledger_.has_room()) {
    SendMessage* m = next_message();
    Path* path = m ? ledger_.choose_path(now) : nullptr;
    if (!path) break;
    send_burst(*m, *path, now, out);
  }
  ledger_.set_held_back(next_message() != nullptr);
}

// Posts segments of one message on one path, then decides whether its flow keeps the turn.
bool Sender::send_burst(SendMessage& m, Path& path, Time now, Outbox& out) {
  uint64_t sent = 0;
  const uint32_t burst = ledger_.burst_bytes();
  while (m.sendable() && sent < burst && !out.segments_full() && ledger_.has_room() &&
         path.usable()) {
    bool repair = false;
    const uint32_t segment = m.take(&repair);
    const uint64_t number = ledger_.post(path, m, segment, repair, now);
    fill_post(out.segment[out.segments++], m, segment, path, number);
    sent += std::max<uint64_t>(m.length(segment), 1);
  }
  if (!m.sendable()) m.ReadyHook::unlink();
  if (m.urgent || !m.flow) return sent > 0;
  SendFlowState& f = *m.flow;
  f.deficit -= static_cast<int64_t>(sent);
  if (f.ready.empty()) {
    f.deficit = 0;
    static_cast<TurnHook&>(f).unlink();
  } else if (f.deficit <= 0) {
    f.deficit += burst;
    turns_.push_back(f);
  }
  return sent > 0;
}

void Sender::fill_post(SegmentPost& post, const SendMessage& m, uint32_t segment, const Path& path,
                       uint64_t number) const {
  const uint64_t offset = uint64_t{segment} * m.segment_bytes;
  post.bytes = static_cast<uint32_t>(m.length(segment));
  post.source = post.bytes == 0 ? nullptr : m.source + offset;
  post.path = path.index;
  post.local_key = m.local_key;
  post.epoch = path.epoch;
  post.cookie = cookie_of(path.index, number);
  if (config_.offloads.places) {
    post.header_bytes = 0;
    post.remote_address = m.remote_address + offset;
    post.remote_key = m.remote_key;
    post.immediate = m.is_short()
                         ? wire::immediate_short(flow_index(m.flow->id), m.part, m.number)
                         : wire::immediate_long(m.pool_index, m.pool_generation & 7, segment);
    return;
  }
  wire::DataHeader h;
  h.packet = number;
  h.path = path.index;
  h.part = m.part;
  h.rail = config_.rail;
  h.flow = m.flow->id;
  h.number = m.number;
  h.segment = segment;
  h.message_bytes = m.bytes;
  h.segment_bytes = m.segment_bytes;
  h.payload_bytes = post.bytes;
  post.header_bytes = static_cast<uint16_t>(wire::encode_data(post.header, config_.peer, h));
}

void Sender::transmit_probes(Time now, Outbox& out) {
  for (Path& path : ledger_.paths()) {
    if (!path.probe_wanted) continue;
    if (out.segments_full()) return;
    path.probe_wanted = false;
    if (path.copies.full() || path.killing) continue;
    const uint64_t number = ledger_.post_probe(path, now);
    SegmentPost& post = out.segment[out.segments++];
    post.bytes = 0;
    post.source = nullptr;
    post.path = path.index;
    post.local_key = 0;
    post.epoch = path.epoch;
    post.cookie = cookie_of(path.index, number);
    post.remote_address = post.remote_key = 0;
    post.immediate = wire::immediate_probe(static_cast<uint32_t>(number));
    post.header_bytes = 0;
    if (!config_.offloads.places) {
      post.header_bytes = static_cast<uint16_t>(
          wire::encode_probe(post.header, config_.peer, {number, path.index, config_.rail}));
    }
  }
}

void Sender::handle_refused(const SegmentPost& post) {
  const PathIndex index = path_of(post.cookie);
  if (index >= ledger_.paths().size()) return;
  Path& path = ledger_.paths()[index];
  if (path.copies.holds(number_of(post.cookie)) && path.copies.at(number_of(post.cookie)).probe) {
    path.probe_wanted = true;
  }
  ledger_.unpost(path, number_of(post.cookie));
}

void Sender::handle_completion(uint64_t cookie) {
  const PathIndex index = path_of(cookie);
  if (index < ledger_.paths().size())
    ledger_.source_free(ledger_.paths()[index], number_of(cookie));
}

void Sender::repeat() {
  for (auto& f : flows_) {
    if (!f) continue;
    if (static_cast<EndHook&>(*f).linked()) ends_due_.push_back(*f);
    if (unrecorded_ == 0 || !f->grants) continue;
    for (SendFlowState::Granted& g : *f->grants) {
      for (SendMessage* m : g.message) {
        if (g.known && m && !m->recorded && !m->finished) records_.push_back(*m);
      }
    }
  }
}

wire::FlowState Sender::end_state(const SendFlowState& f) const {
  const bool clean = f.failure == Failure::kNone;
  return {f.id, wire::FlowRole::kSender,
          clean ? wire::FlowPhase::kFinished : wire::FlowPhase::kReset,
          static_cast<uint32_t>(f.failure), f.surfaced_below};
}

bool Sender::compose(wire::ControlWriter& out) {
  while (SendFlowState* f = seen_.front()) {
    if (!out.add(wire::GrantsSeen{f->id, f->grants_below})) return false;
    static_cast<SeenHook*>(f)->unlink();
  }
  while (SendMessage* m = records_.front()) {
    if (!out.add(wire::Record{m->flow->id, m->number, m->bytes, m->segment_bytes,
                              static_cast<uint16_t>(m->pool_index),
                              static_cast<uint8_t>(m->pool_generation & 7), m->part})) {
      return false;
    }
    m->RecordHook::unlink();
  }
  while (SendMessage* m = ledger_.queries().front()) {
    if (m->flow && !out.add(wire::Query{m->flow->id, m->number, m->part})) return false;
    m->QueryHook::unlink();
  }
  while (SendFlowState* f = ends_due_.front()) {
    if (!out.add(end_state(*f))) return false;
    static_cast<EndDueHook*>(f)->unlink();
  }
  return true;
}

void Sender::add_last_word(std::vector<wire::FlowState>* out) const {
  for (const auto& f : flows_) {
    if (f) out->push_back(end_state(*f));
  }
}

}  // namespace weft
