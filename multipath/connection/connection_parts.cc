// SPDX-License-Identifier: Apache-2.0
// Statements in, control packets out.
#include "multipath/connection/connection_parts.h"

#include <algorithm>

namespace weft {

void Connection::Parts::on(const wire::FlowState& s) {
  if (s.role == wire::FlowRole::kReceiver) {
    sender.on_receiver_ended(report, s);
  } else {
    receiver.on_sender_ended(s);
  }
  if (ends_seen.size() < 256) ends_seen.push_back({s.flow, s.role, s.phase});
}

void Connection::Parts::on(const wire::FlowStateSeen& s) {
  if (s.role == wire::FlowRole::kSender) {
    sender.on_end_seen(s);
  } else {
    receiver.on_end_seen(s);
  }
}

void Connection::Parts::fail_all(Failure failure) {
  failed = true;
  sender.fail_all(failure);
  receiver.fail_all(failure);
}

void Connection::Parts::take_kills() {
  PathIndex index = 0;
  while (sender.ledger().kill_wanted(&index)) kill.start(sender.ledger().paths()[index]);
}

bool Connection::Parts::control_due(Time now) const {
  return receiver.statements_due(now) || sender.statements_due(now) || regions.due() ||
         kill.due() || !ends_seen.empty() || pong_due || ping_wanted;
}

bool Connection::Parts::compose(Time now, wire::ControlWriter& out) {
  if (pong_due && out.add(wire::Pong{pong})) pong_due = false;
  if (ping_wanted && out.add(wire::Ping{pings++})) ping_wanted = false;
  if (!kill.compose(out)) return false;
  while (!ends_seen.empty()) {
    if (!out.add(ends_seen.back())) return false;
    ends_seen.pop_back();
  }
  // Receiver first: its grants may make regions due; acks are what the peer waits for most.
  return receiver.compose(now, out) && regions.compose(out) && sender.compose(out);
}

// Returns whether everything that was due has gone into the outbox.
bool Connection::Parts::transmit_control(Time now, Outbox& out) {
  while (control_due(now)) {
    if (out.controls == Outbox::kControls) return false;
    ControlPost& post = out.control[out.controls];
    const bool prove = receiver.has_news();
    wire::ControlWriter writer(post.data);
    compose(now, writer);
    if (writer.empty()) break;
    wire::ControlHeader header;
    header.stamp = receiver.stamp();
    header.poll_gap_ns = static_cast<uint32_t>(std::min<int64_t>(poll_gap.ns, UINT32_MAX));
    header.rail = config.rail;
    post.bytes = static_cast<uint16_t>(writer.finish(config.peer, header));
    post.path = sender.ledger().control_path(now, prove);
    ++out.controls;
  }
  if (out.controls > 0) poll_gap = {};
  return true;
}

void Connection::Parts::schedule_repeat(Time now) {
  if (!unconfirmed()) {
    repeat_at = Time::never();
    repeat_every = {};
  } else if (repeat_at == Time::never()) {
    repeat_every = std::max(sender.ledger().smoothed_rtt() * 2, config.timer_floor);
    repeat_at = now + repeat_every;
  }
}

}  // namespace weft
