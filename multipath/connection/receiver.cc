// SPDX-License-Identifier: Apache-2.0
// Flows, receives and what lands in them; what is told about it is in receiver_reports.cc.
#include "multipath/connection/receiver.h"

#include <algorithm>

namespace weft {

Receiver::Receiver(const ConnectionConfig& config, Regions& regions)
    : config_(config), regions_(regions), paths_(kMaxPaths) {
  paths_due_.reserve(kMaxPaths);
}

ReceiveFlowState* Receiver::flow_at(uint32_t index) const {
  return index < flows_.size() ? flows_[index].get() : nullptr;
}

ReceiveFlowState* Receiver::flow(FlowId id) const {
  ReceiveFlowState* f = flow_at(flow_index(id));
  return f && f->id == id ? f : nullptr;
}

// Ids go round, so that one comes back only after all others were used: late copies find nothing.
bool Receiver::open_flow(FlowId* id) {
  constexpr uint32_t kFlows = 1u << kFlowIndexBits;
  for (uint32_t tries = 0; tries < kFlows; ++tries) {
    const uint32_t candidate = next_flow_++;
    const uint32_t index = flow_index(candidate);
    if (index >= flows_.size()) flows_.resize(index + 1);
    if (flows_[index]) continue;
    flows_[index] = std::make_unique<ReceiveFlowState>();
    flows_[index]->id = candidate;
    *id = candidate;
    return true;
  }
  return false;
}

// What is not complete never will be; what is complete can still be reported.
void Receiver::drop_receives(ReceiveFlowState& f) {
  unseen_grants_ -= f.posted_below - f.seen_below;
  f.seen_below = f.told_below = f.posted_below;
  static_cast<GrantDueHook&>(f).unlink();
  for (uint32_t n = f.complete_below; n != f.posted_below; ++n) {
    Receive& r = (*f.receives)[n % kMaxReceives];
    if (r.left == 0) continue;
    --open_receives_;
    release(r);
  }
}

void Receiver::release(Receive& r) {
  r.FinishHook::unlink();
  for (int i = 0; i < r.parts; ++i) {
    r.part[i]->PartAckHook::unlink();
    r.flow->parts->release(*r.part[i]);
  }
}

bool Receiver::close_flow(FlowId id) {
  ReceiveFlowState* f = flow(id);
  if (!f || f->closed) return false;
  const bool under_way = f->failure == Failure::kNone && f->complete_below != f->posted_below;
  if (f->failure == Failure::kNone) drop_receives(*f);
  if (under_way) f->failure = Failure::kLocal;
  f->closed = true;
  f->receives.reset();  // their hooks leave every list
  f->parts.reset();
  static_cast<RFailHook*>(f)->unlink();
  static_cast<FlowAckHook*>(f)->unlink();
  if (f->end_seen) {
    flows_[flow_index(id)].reset();
  } else {
    ends_.push_back(*f);
    ends_due_.push_back(*f);
  }
  return under_way;
}

void Receiver::fail(ReceiveFlowState& f, Failure failure) {
  if (f.closed || f.failure != Failure::kNone) return;
  if (f.receives) drop_receives(f);
  f.failure = failure;
  for (Receive* r = finishing_.front(); r;) {
    Receive* after = finishing_.after(*r);
    if (r->flow == &f) done_.push_back(*r);
    r = after;
  }
  failed_.push_back(f);
  ends_.push_back(f);  // the sender shall know too
  ends_due_.push_back(f);
}

void Receiver::fail_all(Failure failure) {
  for (auto& f : flows_) {
    if (f) fail(*f, failure);
  }
}

bool Receiver::region_removed(RegionId id) {
  bool under_way = false;
  for (auto& f : flows_) {
    if (!f || !f->receives) continue;
    bool used = false;
    for (uint32_t n = f->complete_below; n != f->posted_below; ++n) {
      const Receive* r = f->find(n);
      // One that is complete waits for older ones only to be forgotten: nothing of it is written.
      for (int i = 0; r && r->left > 0 && i < r->parts; ++i)
        used = used || (r->part[i]->region == id && r->part[i]->room > 0);
    }
    if (used) fail(*f, Failure::kDeregistered);
    under_way = under_way || used;
  }
  return under_way;
}

bool Receiver::post(FlowId id, std::span<const ReceivePart> parts, Token token) {
  ReceiveFlowState* f = flow(id);
  if (!f || f->closed || f->failure != Failure::kNone) return false;
  if (parts.empty() || parts.size() > wire::kMaxParts) return false;
  if (f->posted_below - f->reported_below == kMaxReceives) return false;
  for (const ReceivePart& p : parts) {
    if (p.size > 0 && !regions_.contains(p.region, p.base, p.size)) return false;
  }
  if (!f->receives) {
    f->receives = std::make_unique<std::array<Receive, kMaxReceives>>();
    f->parts = std::make_unique<Pool<PartState, kMaxPartsInFlow>>();
  }
  if (f->parts->available() < parts.size()) return false;
  if (f->peer_closed) {
    fail(*f, Failure::kPeerClosed);
    return false;
  }
  Receive& r = (*f->receives)[f->posted_below % kMaxReceives];
  r.flow = f;
  r.number = f->posted_below++;
  r.parts = r.left = static_cast<uint8_t>(parts.size());
  r.token = token;
  r.reported = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    PartState* p = f->parts->take();
    r.part[i] = p;
    p->receive = &r;
    p->index = static_cast<uint8_t>(i);
    p->base = parts[i].base;
    p->room = parts[i].size;
    p->region = parts[i].region;
    p->tag = parts[i].tag;
    p->sized = false;
    p->claimed.reset();
    p->arrived.reset();
  }
  ++unseen_grants_;
  ++open_receives_;
  grants_due_.push_back(*f);
  grants_now_ |= !has_spare_grants(*f);
  return true;
}

// The part that a header or record names, if its receive is posted and it is not complete.
PartState* Receiver::open_part(ReceiveFlowState& f, uint32_t number, uint32_t part) {
  if (f.closed || f.failure != Failure::kNone) return nullptr;
  Receive* r = f.find(number);
  if (!r || r->left == 0 || part >= r->parts || r->part[part]->complete()) return nullptr;
  return r->part[part];
}

// The first word about a message fixes its size; later words must agree.
bool Receiver::size_part(PartState& p, uint64_t bytes, uint32_t segment_bytes) {
  if (p.sized) return p.bytes == bytes && p.segment_bytes == segment_bytes;
  if (bytes > p.room) {
    fail(*p.receive->flow, Failure::kTooLarge);
    return false;
  }
  p.sized = true;
  p.bytes = bytes;
  p.segment_bytes = segment_bytes;
  p.segments = bytes == 0 ? 1 : static_cast<uint32_t>((bytes - 1) / segment_bytes + 1);
  return true;
}

std::byte* Receiver::claim(Time now, const wire::DataHeader& h) {
  static std::byte nothing;  // where the zero bytes of an empty message go
  if (h.path >= kMaxPaths || h.segment_bytes != config_.peer_segment_bytes) return nullptr;
  ReceiveFlowState* f = flow(h.flow);
  if (!f) return nullptr;
  PartState* p = open_part(*f, h.number, h.part);
  if (!p) {
    acknowledge_again(now, *f, h.number, h.part);
    // A copy of what is complete: its packet number counts as arrived, for the segment has.
    if (static_cast<int32_t>(h.number - f->complete_below) < 0)
      see_packet(now, h.path, h.packet, false);
    return nullptr;
  }
  if (!size_part(*p, h.message_bytes, h.segment_bytes)) return nullptr;
  if (!p->claimed.set(h.segment)) {
    acknowledge_again(now, *f, h.number, h.part);
    if (p->arrived.test(h.segment)) see_packet(now, h.path, h.packet, false);
    return nullptr;
  }
  return p->base ? p->base + uint64_t{h.segment} * h.segment_bytes : &nothing;
}

void Receiver::on_arrival(Time now, const wire::DataHeader& h, bool marked) {
  ReceiveFlowState* f = flow(h.flow);
  PartState* p = f ? open_part(*f, h.number, h.part) : nullptr;
  if (!p || !p->sized || !p->claimed.test(h.segment)) return;
  see_packet(now, h.path, h.packet, marked);
  arrive(now, *p, h.segment);
}

void Receiver::on_probe(Time now, const wire::ProbeHeader& probe, bool marked) {
  if (probe.path >= kMaxPaths) return;
  see_packet(now, probe.path, probe.packet, marked);
  owe_ack(now, kAtOnce);
}

void Receiver::see_packet(Time now, PathIndex index, uint64_t packet, bool marked) {
  PathArrivals& path = paths_[index];
  if (packet < wire::kFirstPacket) return;
  if (packet > path.largest) {
    path.largest = packet;
    path.largest_at = now;
    if (packet >= 512) path.seen.advance(packet - 511);
  }
  path.seen.set(packet);
  path.marks += marked;
  ++stamp_;
  if (!path.due) {
    path.due = true;
    paths_due_.push_back(index);
  }
}

void Receiver::arrive(Time now, PartState& p, uint32_t segment) {
  if (!p.arrived.set(segment)) return;
  p.arrived.slide();
  p.claimed.advance(p.arrived.base());
  p.latest = segment;
  p.latest_at = now;
  ++stamp_;
  parts_due_.push_back(p);
  const bool whole = p.complete();
  // What follows a small message is mostly an answer, which takes the ack along.
  owe_ack(now, !whole            ? config_.max_hold
               : p.segments == 1 ? std::min(kShortHold, config_.max_hold)
                                 : kAtOnce);
  if (whole) finish_part(p);
}

void Receiver::finish_part(PartState& p) {
  Receive& r = *p.receive;
  if (--r.left > 0) return;
  ReceiveFlowState& f = *r.flow;
  finishing_.push_back(r);
  --open_receives_;
  const uint32_t before = f.complete_below;
  while (f.complete_below != f.posted_below &&
         (*f.receives)[f.complete_below % kMaxReceives].left == 0) {
    ++f.complete_below;
  }
  if (f.complete_below != before) flows_due_.push_back(f);
  // What is complete was granted and seen, whether the sender said so or not.
  if (static_cast<int32_t>(f.complete_below - f.seen_below) > 0)
    on_grants_seen({f.id, f.complete_below});
}

}  // namespace weft
