// SPDX-License-Identifier: Apache-2.0
// What the receiving half tells the sender, and what it hears from it.
#include <algorithm>
#include <bit>

#include "multipath/connection/receiver.h"

namespace weft {
namespace {

// A small message counts for several arrivals: somebody may wait for its end.
constexpr uint32_t kShortWeight = 4;
constexpr int kMostPathWords = 4;  // 256 packets: as many as the sender's ring holds

uint32_t hold_of(Time now, Time since) {
  const int64_t held = now.ns - since.ns;
  return static_cast<uint32_t>(std::clamp<int64_t>(held, 0, UINT32_MAX));
}

}  // namespace

void Receiver::owe_ack(Time now, Duration hold) {
  owed_ += hold == kShortHold ? kShortWeight : 1;
  if (owed_ >= ack_every_ || hold <= Duration{0}) ack_now_ = true;
  ack_deadline_ = earlier(ack_deadline_, now + hold);
}

// An ack costs both ends as much as a train of segments: while so many arrivals come well within
// the time for which one may be held, it waits for more. When time is up long before, as with a
// sender whose window is smaller, for fewer.
void Receiver::adapt_acks(Time now) {
  const Duration since = now - acked_at_;
  acked_at_ = now;
  if (owed_ >= ack_every_) {
    if (since > Duration{0} && since < config_.max_hold * 3 / 4)
      ack_every_ = std::min(ack_every_ * 2, kAckEveryMost);
  } else if (!ack_now_ && owed_ < ack_every_ * 3 / 4) {
    ack_every_ = std::max(ack_every_ / 2, kAckEveryLeast);
  }
}

void Receiver::acknowledge_again(Time now, ReceiveFlowState& f, uint32_t number, uint32_t part) {
  if (f.closed || f.failure != Failure::kNone) {
    if (!f.end_seen) ends_due_.push_back(f);
  } else if (static_cast<int32_t>(number - f.complete_below) < 0) {
    flows_due_.push_back(f);
  } else if (Receive* r = f.find(number); r && part < r->parts) {
    parts_due_.push_back(*r->part[part]);
  } else {
    return;
  }
  owe_ack(now, kAtOnce);
}

void Receiver::on_grants_seen(const wire::GrantsSeen& seen) {
  ReceiveFlowState* f = flow(seen.flow);
  if (!f) return;
  const auto ahead = static_cast<int32_t>(seen.below - f->seen_below);
  if (ahead <= 0 || seen.below - f->seen_below > f->posted_below - f->seen_below) return;
  unseen_grants_ -= static_cast<uint32_t>(ahead);
  f->seen_below = seen.below;
  if (static_cast<int32_t>(f->told_below - seen.below) < 0) f->told_below = seen.below;
  if (f->seen_below == f->posted_below) static_cast<GrantDueHook*>(f)->unlink();
}

void Receiver::on_record(Time now, const wire::Record& record) {
  ReceiveFlowState* f = flow(record.flow);
  if (!f || record.slot >= wire::kImmediateSlots) return;
  PartState* p = open_part(*f, record.number, record.part);
  acknowledge_again(now, *f, record.number,
                    record.part);  // an ack of a sized message confirms the record
  if (!p || !size_part(*p, record.size, record.segment_bytes)) return;
  if (slots_.empty()) slots_.resize(wire::kImmediateSlots);
  Slot& slot = slots_[record.slot];
  const uint64_t early = slot.generation == record.generation && !slot.known ? slot.early : 0;
  slot = {0, record.generation, true, record.flow, record.number, record.part};
  for (uint64_t rest = early; rest != 0; rest &= rest - 1) {
    const auto segment = static_cast<uint32_t>(std::countr_zero(rest));
    if (segment < p->segments && !p->complete()) arrive(now, *p, segment);
  }
}

void Receiver::on_query(Time now, const wire::Query& query) {
  if (ReceiveFlowState* f = flow(query.flow)) acknowledge_again(now, *f, query.number, query.part);
}

void Receiver::on_sender_ended(const wire::FlowState& state) {
  ReceiveFlowState* f = flow(state.flow);
  if (!f || state.phase == wire::FlowPhase::kOpen) return;
  f->peer_closed = true;
  if (f->complete_below != f->posted_below || state.phase == wire::FlowPhase::kReset) {
    fail(*f, Failure::kPeerClosed);
  }
}

void Receiver::on_end_seen(const wire::FlowStateSeen& seen) {
  ReceiveFlowState* f = flow(seen.flow);
  if (!f || seen.phase == wire::FlowPhase::kOpen) return;
  if (f->closed) {
    flows_[flow_index(seen.flow)].reset();
  } else if (f->failure != Failure::kNone) {
    f->end_seen = true;
    static_cast<REndHook*>(f)->unlink();
    static_cast<REndDueHook*>(f)->unlink();
  }
}

bool Receiver::statements_due(Time now) const { return deadline() <= now || !ends_due_.empty(); }

// Two receives that the sender knows of and has not begun to fill: it does not wait for a third.
bool Receiver::has_spare_grants(const ReceiveFlowState& f) {
  constexpr uint32_t kSpare = 2;
  if (f.told_below - f.complete_below < kSpare) return false;
  for (uint32_t n = f.told_below - kSpare; n != f.told_below; ++n) {
    const Receive& r = (*f.receives)[n % kMaxReceives];
    for (int i = 0; i < r.parts; ++i) {
      if (r.part[i]->sized) return false;
    }
  }
  return true;
}

void Receiver::start_holds(Time now) {
  if (!grants_due_.empty()) grants_deadline_ = earlier(grants_deadline_, now + kShortHold);
}

void Receiver::repeat() {
  for (auto& f : flows_) {
    if (!f) continue;
    if (static_cast<REndHook&>(*f).linked()) ends_due_.push_back(*f);
    if (f->closed || f->seen_below == f->posted_below) continue;
    f->told_below = f->seen_below;
    grants_due_.push_back(*f);
    grants_now_ = true;
  }
}

bool Receiver::compose_acks(Time now, wire::ControlWriter& out) {
  while (!paths_due_.empty()) {
    const PathIndex index = paths_due_.back();
    PathArrivals& path = paths_[index];
    wire::PathAck ack;
    ack.path = index;
    ack.epoch = path.epoch;
    ack.largest = path.largest;
    ack.hold_ns = hold_of(now, path.largest_at);
    ack.marks = path.marks;
    if (!config_.offloads.places) {
      // What is new since the last report, and at least 64 packets before that, in case it was
      // lost.
      const uint64_t news = path.largest - path.reported;
      ack.words = static_cast<uint8_t>(std::min<uint64_t>(news / 64 + 2, kMostPathWords));
      const uint64_t first = path.largest + 1 - 64ull * ack.words;
      for (int w = 0; w < ack.words; ++w) {
        const uint64_t at = first + 64ull * w;
        ack.bits[w] = at + 64 > path.seen.base() ? path.seen.bits_from(at) : 0;
      }
    }
    if (!out.add(ack)) return false;
    path.reported = path.largest;
    path.due = false;
    paths_due_.pop_back();
  }
  while (PartState* p = parts_due_.front()) {
    const bool by_flow =
        static_cast<int32_t>(p->receive->number - p->receive->flow->complete_below) < 0;
    // On datagram fabrics the path acks and the flow ack say all of it; placing ones want the
    // latest arrival.
    if (!by_flow || config_.offloads.places) {
      wire::MessageAck ack;
      ack.flow = p->receive->flow->id;
      ack.number = p->receive->number;
      ack.part = p->index;
      ack.sized = p->sized;
      ack.base = static_cast<uint32_t>(p->arrived.base());
      ack.latest = p->latest;
      ack.hold_ns = hold_of(now, p->latest_at);
      for (int w = 0; w < wire::kMaxAckWords; ++w) {
        ack.bits[w] = p->arrived.bits_from(ack.base + 64ull * w);
        if (ack.bits[w] != 0) ack.words = static_cast<uint8_t>(w + 1);
      }
      if (!out.add(ack)) return false;
    }
    p->PartAckHook::unlink();
  }
  while (ReceiveFlowState* f = flows_due_.front()) {
    if (!out.add(wire::FlowAck{f->id, f->complete_below})) return false;
    static_cast<FlowAckHook*>(f)->unlink();
  }
  return true;
}

bool Receiver::tell_grants(ReceiveFlowState& f, wire::ControlWriter& out) {
  while (f.told_below != f.posted_below) {
    const Receive& r = (*f.receives)[f.told_below % kMaxReceives];
    wire::Grant grant;
    grant.flow = f.id;
    grant.number = f.told_below;
    grant.parts = r.parts;
    for (int i = 0; i < r.parts; ++i) {
      const PartState& p = *r.part[i];
      // What is complete is known to the sender, and its memory may be gone: it is named no more.
      const uint64_t room = r.left > 0 ? p.room : 0;
      grant.part[i] = {0, 0, 0, room, p.tag};
      if (room == 0) continue;
      grant.part[i].region = p.region;
      grant.part[i].epoch = regions_.epoch(p.region);
      grant.part[i].offset = regions_.offset(p.region, p.base);
      regions_.announce(p.region);
    }
    if (!out.add(grant)) return false;
    ++f.told_below;
  }
  return true;
}

bool Receiver::compose(Time now, wire::ControlWriter& out) {
  if (!compose_acks(now, out)) return false;
  while (ReceiveFlowState* f = ends_due_.front()) {
    if (!out.add(end_state(*f))) return false;
    static_cast<REndDueHook*>(f)->unlink();
  }
  while (ReceiveFlowState* f = grants_due_.front()) {
    if (!tell_grants(*f, out)) return false;
    static_cast<GrantDueHook*>(f)->unlink();
  }
  if (owed_ > 0) adapt_acks(now);
  owed_ = 0;
  ack_now_ = grants_now_ = false;
  ack_deadline_ = grants_deadline_ = Time::never();
  return true;
}

void Receiver::acks_left() {
  while (Receive* r = finishing_.front()) done_.push_back(*r);
}

bool Receiver::poll_event(Event* event) {
  if (Receive* r = done_.front()) {
    ReceiveFlowState& f = *r->flow;
    *event = Event{};
    event->kind = Event::Kind::kReceived;
    event->role = wire::FlowRole::kReceiver;
    event->flow = f.id;
    event->token = r->token;
    event->number = r->number;
    event->parts = r->parts;
    for (int i = 0; i < r->parts; ++i) event->sizes[i] = r->part[i]->bytes;
    r->FinishHook::unlink();
    r->reported = true;
    while (f.reported_below != f.complete_below) {
      Receive& first = (*f.receives)[f.reported_below % kMaxReceives];
      if (!first.reported) break;
      release(first);
      ++f.reported_below;
    }
    return true;
  }
  if (ReceiveFlowState* f = failed_.pop_front()) {
    *event = Event{};
    event->kind = Event::Kind::kFlowFailed;
    event->role = wire::FlowRole::kReceiver;
    event->flow = f->id;
    event->failure = f->failure;
    return true;
  }
  return false;
}

wire::FlowState Receiver::end_state(const ReceiveFlowState& f) const {
  const bool clean = f.failure == Failure::kNone;
  return {f.id, wire::FlowRole::kReceiver,
          clean ? wire::FlowPhase::kFinished : wire::FlowPhase::kReset,
          static_cast<uint32_t>(f.failure), f.complete_below};
}

void Receiver::add_last_word(std::vector<wire::FlowState>* out) const {
  for (const auto& f : flows_) {
    if (f) out->push_back(end_state(*f));
  }
}

}  // namespace weft
