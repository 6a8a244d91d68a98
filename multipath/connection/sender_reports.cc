// SPDX-License-Identifier: Apache-2.0
// What the receiver of our flows says: grants, acks, ends.
#include <algorithm>

#include "multipath/connection/sender.h"

namespace weft {

void Sender::on_grant(Time now, const wire::Grant& grant) {
  SendFlowState* f = flow(grant.flow);
  if (!f || f->closed) return;
  // Whatever it is, the receiver repeats it because it has not heard what we have.
  if (seen_.empty()) seen_deadline_ = now + config_.max_hold;
  seen_.push_back(*f);
  if (f->failure != Failure::kNone) return;
  const auto ahead = static_cast<int32_t>(grant.number - f->grants_below);
  if (ahead < 0 || ahead >= static_cast<int32_t>(kMaxReceives)) return;
  if (!f->grants) f->grants = std::make_unique<std::array<SendFlowState::Granted, kMaxReceives>>();
  SendFlowState::Granted& slot = (*f->grants)[grant.number % kMaxReceives];
  if (slot.known) return;  // a repetition, or its turn comes when the older one is over
  slot = SendFlowState::Granted{};
  slot.grant = grant;
  slot.known = true;
  while (true) {
    SendFlowState::Granted* next = f->find(f->grants_below);
    if (!next) break;
    ++f->grants_below;
    // A lap of the ring is enough: the slot after the last known one is free or older.
    if (f->grants_below - f->surfaced_below == kMaxReceives) break;
  }
  granted_.push_back(*f);
}

void Sender::on_region_known() {
  for (auto& f : flows_) {
    if (f && !f->closed && f->surfaced_below != f->grants_below) granted_.push_back(*f);
  }
}

bool Sender::mark_range(SendMessage& m, uint32_t base, const uint64_t* bits, int words) {
  bool news = false;
  for (uint64_t s = m.acked.base(); s < std::min<uint64_t>(base, m.next); ++s) {
    news |= m.mark_acked(static_cast<uint32_t>(s));
  }
  for (int w = 0; w < words; ++w) {
    for (uint64_t rest = bits[w]; rest != 0; rest &= rest - 1) {
      const uint64_t segment = base + 64ull * w + static_cast<uint64_t>(std::countr_zero(rest));
      if (segment < m.next) news |= m.mark_acked(static_cast<uint32_t>(segment));
    }
  }
  ledger_.touched().push_back(m);
  return news;
}

void Sender::on_path_ack(const Report& report, const wire::PathAck& ack) {
  ledger_.on_path_ack(report, ack);
}

void Sender::on_message_ack(const Report& report, const wire::MessageAck& ack) {
  SendFlowState* f = flow(ack.flow);
  SendFlowState::Granted* g = f ? f->find(ack.number) : nullptr;
  SendMessage* m = g ? g->message[ack.part] : nullptr;
  if (!m || m->next == 0) return;  // of nothing there is nothing to report
  if (!m->is_short() && !ack.sized) {
    // What landed before the record is not in this report, so it is no state to repair from.
    records_.push_back(*m);
    return;
  }
  if (!m->recorded) {
    m->recorded = true;
    --unrecorded_;
    m->RecordHook::unlink();
  }
  m->state_stamp = std::max(m->state_stamp, report.stamp);
  // Mostly the path acks in the same packet have said it all.
  if (mark_range(*m, ack.base, ack.bits.data(), ack.words))
    ledger_.sweep(report, m, ack.latest, nanoseconds(ack.hold_ns));
}

void Sender::on_flow_ack(const Report& report, const wire::FlowAck& ack) {
  SendFlowState* f = flow(ack.flow);
  if (!f || !f->grants) return;
  bool any = false;
  for (SendFlowState::Granted& g : *f->grants) {
    if (!g.known || static_cast<int32_t>(g.grant.number - ack.below) >= 0) continue;
    for (SendMessage* m : g.message) {
      if (!m) continue;
      m->state_stamp = std::max(m->state_stamp, report.stamp);
      any |= mark_range(*m, m->segments, nullptr, 0);
    }
  }
  if (any) ledger_.sweep(report, nullptr, 0, {});
}

void Sender::after_reports(Time now) {
  ledger_.look_for_losses(now);
  settle_touched();
}

void Sender::on_receiver_ended(const Report& report, const wire::FlowState& state) {
  SendFlowState* f = flow(state.flow);
  if (!f || state.phase == wire::FlowPhase::kOpen) return;
  on_flow_ack(report, {state.flow, state.below});
  settle_touched();
  f->peer_closed = true;
  if (!f->closed && f->failure == Failure::kNone) fail(*f, Failure::kPeerClosed);
}

void Sender::on_end_seen(const wire::FlowStateSeen& seen) {
  SendFlowState* f = flow(seen.flow);
  if (!f || seen.phase == wire::FlowPhase::kOpen) return;
  if (f->closed) {
    flows_[flow_index(seen.flow)].reset();
  } else if (f->failure != Failure::kNone) {
    f->end_seen = true;
    static_cast<EndHook*>(f)->unlink();
    static_cast<EndDueHook*>(f)->unlink();
  }
}

}  // namespace weft
