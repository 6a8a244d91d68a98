// SPDX-License-Identifier: Apache-2.0
// Flows, grants and messages; reports are handled in sender_reports.cc, transmission in
// sender_transmit.cc.
#include "multipath/connection/sender.h"

namespace weft {

Sender::Sender(const ConnectionConfig& config, Regions& regions)
    : config_(config), regions_(regions), ledger_(config, messages_) {}

SendFlowState* Sender::flow(FlowId id) const {
  const uint32_t index = flow_index(id);
  if (index >= flows_.size() || !flows_[index] || flows_[index]->id != id) return nullptr;
  return flows_[index].get();
}

bool Sender::open_flow(FlowId id) {
  const uint32_t index = flow_index(id);
  if (index >= flows_.size()) flows_.resize(index + 1);
  if (flows_[index]) return false;
  flows_[index] = std::make_unique<SendFlowState>();
  flows_[index]->id = id;
  return true;
}

void Sender::close_flow(FlowId id) {
  SendFlowState* f = flow(id);
  if (!f || f->closed) return;
  f->closed = true;
  if (f->open_messages > 0 && f->failure == Failure::kNone) f->failure = Failure::kLocal;
  abandon_messages(*f);
  for (auto* list : {&done_, &ending_}) {
    for (SendMessage* m = list->front(); m; m = list->after(*m)) {
      if (m->flow == f) m->flow = nullptr;
    }
  }
  static_cast<GrantHook*>(f)->unlink();
  static_cast<SeenHook*>(f)->unlink();
  static_cast<FailHook*>(f)->unlink();
  f->grants.reset();
  if (f->end_seen) {
    flows_[flow_index(id)].reset();
  } else {
    ends_.push_back(*f);
    ends_due_.push_back(*f);
  }
}

bool Sender::post(const MatchedSend& send) {
  SendFlowState* f = flow(send.flow);
  if (!f || f->closed || f->failure != Failure::kNone) return false;
  SendFlowState::Granted* granted = f->find(send.number);
  if (!granted || send.part >= granted->grant.parts || granted->taken >> send.part & 1)
    return false;
  const wire::GrantPart& grant = granted->grant.part[send.part];
  if (send.bytes > grant.size || send.number >= f->surfaced_below) return false;
  SendMessage* m = messages_.take();
  if (!m) return false;

  const wire::Region* region = regions_.remote(grant.region, grant.epoch);
  m->flow = f;
  m->number = send.number;
  m->part = send.part;
  m->token = send.token;
  m->region = send.region;
  m->source = send.source;
  m->bytes = send.bytes;
  m->local_key = send.local_key;
  m->remote_address = region ? region->base + grant.offset : 0;
  m->remote_key = region && config_.rail < region->rails ? region->keys[config_.rail] : 0;
  m->segment_bytes = config_.segment_bytes;
  m->segments =
      send.bytes == 0 ? 1 : static_cast<uint32_t>((send.bytes - 1) / m->segment_bytes + 1);
  // On placing fabrics a statement of the message alone tells what has arrived.
  m->window = config_.offloads.places ? 64 * wire::kMaxAckWords : kSegmentWindow;
  m->urgent = m->is_short() || (send.hints.latency_bound && send.bytes <= kUrgentBytes);
  m->next = 0;
  m->acked.reset();
  m->repair.reset();
  m->repairs = m->unsettled = m->sources = 0;
  m->state_stamp = 0;
  m->query_after = Time{INT64_MIN};
  m->recorded = !config_.offloads.places || m->is_short();
  m->finished = false;

  granted->taken |= static_cast<uint8_t>(1u << send.part);
  granted->message[send.part] = m;
  ++f->open_messages;
  ++open_messages_;
  hints_ = send.hints;
  if (!m->recorded) {
    ++unrecorded_;
    records_.push_back(*m);
  }
  make_ready(*m);
  return true;
}

void Sender::make_ready(SendMessage& m) {
  if (m.ReadyHook::linked() || !m.flow || !m.sendable()) return;
  if (m.urgent) {
    urgent_.push_back(m);
    return;
  }
  SendFlowState& f = *m.flow;
  f.ready.insert_sorted(m, [](const SendMessage& a, const SendMessage& b) {
    return static_cast<int32_t>(a.number - b.number) < 0;
  });
  if (!static_cast<TurnHook&>(f).linked()) turns_.push_back(f);
}

// The message is over for everybody but the ledger: no list but `done` knows it any more.
void Sender::end_message(SendMessage& m) {
  m.finished = true;
  m.ReadyHook::unlink();
  m.RecordHook::unlink();
  m.QueryHook::unlink();
  if (!m.recorded) {
    m.recorded = true;
    --unrecorded_;
  }
  if (SendFlowState* f = m.flow) {
    --f->open_messages;
    --open_messages_;
    if (f->ready.empty()) static_cast<TurnHook*>(f)->unlink();
    if (SendFlowState::Granted* g = f->find(m.number)) {
      g->message[m.part] = nullptr;
      g->complete |= static_cast<uint8_t>(1u << m.part);
      if (g->complete == (1u << g->grant.parts) - 1) g->known = false;
    }
  }
}

// What is complete can still be reported: a peer that closes after the last message has fetched
// them all.
void Sender::abandon_messages(SendFlowState& f) {
  if (f.grants) {
    for (SendFlowState::Granted& g : *f.grants) {
      for (SendMessage*& slot : g.message) {
        SendMessage* m = slot;
        if (!g.known || !m) continue;
        end_message(*m);
        m->flow = nullptr;
        slot = nullptr;
        ledger_.touched().push_back(*m);
      }
    }
  }
  settle_touched();
}

void Sender::fail(SendFlowState& f, Failure failure) {
  if (f.closed || f.failure != Failure::kNone) return;
  f.failure = failure;
  abandon_messages(f);
  failed_.push_back(f);
  ends_.push_back(f);  // the receiver shall know too
  ends_due_.push_back(f);
}

void Sender::fail_all(Failure failure) {
  for (auto& f : flows_) {
    if (f) fail(*f, failure);
  }
}

void Sender::region_removed(RegionId id) {
  for (auto& f : flows_) {
    if (!f || !f->grants || f->open_messages == 0) continue;
    bool used = false;
    for (SendFlowState::Granted& g : *f->grants) {
      for (SendMessage* m : g.message)
        used = used || (g.known && m && m->region == id && m->bytes > 0);
    }
    if (used) fail(*f, Failure::kDeregistered);
  }
}

void Sender::settle_touched() {
  auto& touched = ledger_.touched();
  while (SendMessage* m = touched.pop_front()) {
    if (!m->finished) {
      if (m->all_acked()) {
        complete(*m);
      } else {
        make_ready(*m);
        continue;
      }
    }
    if (m->sources > 0) {
      ending_.push_back(*m);
    } else if (m->flow) {
      done_.push_back(*m);
    } else if (m->unsettled == 0) {
      m->DoneHook::unlink();
      messages_.release(*m);
    }
  }
}

void Sender::complete(SendMessage& m) { end_message(m); }

bool Sender::surface(SendFlowState& f, Event* event) {
  if (f.surfaced_below == f.grants_below) return false;
  SendFlowState::Granted* g = f.find(f.surfaced_below);
  if (!g) return false;
  for (int i = 0; i < g->grant.parts; ++i) {
    const wire::GrantPart& part = g->grant.part[i];
    if (part.size == 0) continue;
    const wire::Region* region = regions_.remote(part.region, part.epoch);
    if (!region)
      return false;  // its announcement is on the way, and told again until we confirm it
    if (part.size > region->length || part.offset > region->length - part.size) {
      fail(f, Failure::kPeerBroke);
      return false;
    }
  }
  *event = Event{};
  event->kind = Event::Kind::kGranted;
  event->flow = f.id;
  event->number = f.surfaced_below++;
  event->grant = g->grant;
  return true;
}

bool Sender::poll_event(Event* event) {
  while (SendMessage* m = done_.pop_front()) {
    SendFlowState* f = m->flow;
    if (f) {
      *event = Event{};
      event->kind = Event::Kind::kSent;
      event->flow = f->id;
      event->token = m->token;
      event->number = m->number;
      event->parts = 1;
      event->sizes[0] = m->bytes;
    }
    m->flow = nullptr;
    ledger_.touched().push_back(*m);
    settle_touched();
    if (f) return true;
  }
  while (SendFlowState* f = granted_.front()) {
    if (surface(*f, event)) return true;
    static_cast<GrantHook*>(f)->unlink();
  }
  if (SendFlowState* f = failed_.pop_front()) {
    *event = Event{};
    event->kind = Event::Kind::kFlowFailed;
    event->flow = f->id;
    event->failure = f->failure;
    return true;
  }
  return false;
}

}  // namespace weft
