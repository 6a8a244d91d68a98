// SPDX-License-Identifier: Apache-2.0
// The loop: commands, fabric, connections, events. Set-up is in engine_members.cc, input in
// engine_input.cc.
#include "multipath/engine/engine.h"

#include <algorithm>

namespace weft {
namespace {

constexpr int kRounds = 4;  // of poll and service in one progress
// arrivals before connections get their turn: acks stay prompt
constexpr size_t kPollBudget = 256;
constexpr size_t kFewSegments = 4;
constexpr int kOutboxes = 4;                   // of one connection before the next one's turn
constexpr Duration kRetry = microseconds(50);  // before a fabric that is full is offered more

}  // namespace

Engine::Engine(Fabric& fabric, Clock clock)
    : fabric_(fabric), clock_(clock), outbox_(std::make_unique<Outbox>()) {
  decoded_.resize(kPollBudget);
}

Engine::~Engine() = default;

bool Engine::progress(Time now) {
  poll_gap_ = now_.ns == INT64_MIN || now < now_ ? Duration{} : now - now_;
  now_ = std::max(now_, now);
  blocked_ = posted_ = false;
  forgive_refusals();
  drain_commands();
  bool worked = !active_.empty();
  // What the application has just asked for does not wait for the fabric; timers do, since what
  // they wait for may lie there.
  service_active(false);
  for (int round = 0; round < kRounds; ++round) {
    const size_t arrivals = fabric_.poll(now_, kPollBudget, *this);
    activate_due();
    worked |= arrivals > 0 || !active_.empty();
    service_active(true);
    if (arrivals < kPollBudget && (active_.empty() || blocked_)) break;
  }
  return worked || posted_;
}

Time Engine::poll_timeout() const {
  if (!active_.empty()) return blocked_ ? now_ + kRetry : now_;
  return earlier(next_deadline_, forgive_at_);
}

void Engine::look_at_clock() {
  if (clock_) now_ = std::max(now_, clock_());
}

void Engine::drain_commands() {
  dirty_.take_all([this](Flow& flow) {
    flow.drain(*this);
    activate(flow.member());
  });
}

void Engine::carry_out(SendFlow& flow, const MatchedSend& send) {
  auto& request = *reinterpret_cast<Request*>(send.token);
  if (flow.failure() == Failure::kNone && flow.member().connection->post_send(send)) {
    flow.outstanding_.push_back(request);
  } else {
    fail(request, flow.failure() == Failure::kNone ? Failure::kLocal : flow.failure());
  }
}

void Engine::carry_out(ReceiveFlow& flow, Request& request, std::span<const ReceivePart> parts) {
  const auto token = reinterpret_cast<Token>(&request);
  if (flow.failure() == Failure::kNone &&
      flow.member().connection->post_receive(flow.id(), parts, token)) {
    flow.outstanding_.push_back(request);
  } else {
    fail(request, flow.failure() == Failure::kNone ? Failure::kLocal : flow.failure());
  }
}

void Engine::note_refused(SendFlow& flow) {
  if (std::find(refused_.begin(), refused_.end(), &flow) != refused_.end()) return;
  flow.member().connection->handle_wanted(now_);
  refused_.push_back(&flow);
  if (forgive_at_ == Time::never()) forgive_at_ = now_ + kRefusalPeriod;
}

void Engine::forgive_refusals() {
  if (forgive_at_ > now_) return;
  for (SendFlow* flow : refused_) flow->refused_.store(false, std::memory_order_relaxed);
  refused_.clear();
  forgive_at_ = Time::never();
}

// Looks at the table of deadlines only when one of them is due.
void Engine::activate_due() {
  if (next_deadline_ > now_) return;
  next_deadline_ = Time::never();
  for (size_t i = 0; i < deadlines_.size(); ++i) {
    if (deadlines_[i] <= now_) {
      activate(*members_[i]);  // its deadline is noted anew when it has been serviced
    } else {
      next_deadline_ = earlier(next_deadline_, deadlines_[i]);
    }
  }
}

void Engine::activate(Member& member) {
  if (!member.linked()) active_.push_back(member);
}

bool Engine::service_active(bool timers) {
  while (Member* member = active_.pop_front()) {
    if (service(*member, timers)) again_.push_back(*member);
  }
  while (Member* member = again_.pop_front()) active_.push_back(*member);
  return !active_.empty();
}

bool Engine::service(Member& member, bool timers) {
  Connection& connection = *member.connection;
  connection.handle_poll_gap(poll_gap_);
  if (timers && connection.poll_timeout() <= now_) connection.handle_timeout(now_);
  bool more = true;
  for (int i = 0; i < kOutboxes && more; ++i) {
    outbox_->clear();
    outbox_->segment_limit = std::min(fabric_.room(), Outbox::kSegments);
    connection.poll_transmit(now_, *outbox_);
    // Without room there may be more, as where something is refused.
    const bool no_room = outbox_->segment_limit == 0;
    if (outbox_->empty() && !no_room) {
      more = false;
    } else if (!post_outbox(member) || no_room) {
      blocked_ = true;
      break;
    }
  }
  deliver_events(member);
  note_deadline(member);
  return more;
}

// False when the fabric took less than everything.
bool Engine::post_outbox(Member& member) {
  Outbox& out = *outbox_;
  posted_ = true;
  for (size_t i = 0; i < out.commands; ++i) {
    const PathCommand& c = out.command[i];
    if (c.what == PathCommand::What::kKill) {
      fabric_.kill_path(member.link, c.path, c.epoch);
    } else {
      fabric_.reopen_path(member.link, c.path, c.epoch);
    }
  }
  // Acks and grants before bulk; but somebody may be waiting for a small message.
  const bool few = out.segments <= kFewSegments;
  const bool first = few ? post_segments(member) : post_controls(member);
  const bool second = few ? post_controls(member) : post_segments(member);
  return first && second;
}

bool Engine::post_controls(Member& member) {
  Outbox& out = *outbox_;
  if (out.controls == 0) return true;
  for (size_t i = 0; i < out.controls; ++i) out.control[i].link = member.link;
  const size_t taken = fabric_.post_control(now_, std::span(out.control).first(out.controls));
  counters_.controls_refused += out.controls - taken;  // as if lost in the network
  return taken == out.controls;
}

bool Engine::post_segments(Member& member) {
  Outbox& out = *outbox_;
  if (out.segments == 0) return true;
  for (size_t i = 0; i < out.segments; ++i) out.segment[i].link = member.link;
  const auto batch = std::span(out.segment).first(out.segments);
  const size_t taken = fabric_.post(now_, batch);
  if (taken == batch.size()) return true;
  member.connection->handle_refused(batch.subspan(taken));
  return false;
}

void Engine::note_deadline(Member& member) {
  const Time deadline = member.connection->poll_timeout();
  deadlines_[member.own.connection & 0xffff] = deadline;
  next_deadline_ = earlier(next_deadline_, deadline);
}

void Engine::deliver_events(Member& member) {
  Event event;
  while (member.connection->poll_event(&event)) {
    Flow* flow = find_flow(member, event.flow, event.role);
    if (!flow) continue;  // closed: its requests are gone
    switch (event.kind) {
      case Event::Kind::kGranted:
        // An honest peer cannot fill the ring (flow.h); a dishonest one loses its flow.
        if (!static_cast<SendFlow*>(flow)->deliver_grant(event.grant)) {
          fail_flow(*flow, Failure::kPeerBroke);
        }
        break;
      case Event::Kind::kSent: complete(*reinterpret_cast<Request*>(event.token)); break;
      case Event::Kind::kReceived: {
        auto& request = *reinterpret_cast<Request*>(event.token);
        request.sizes = event.sizes;
        complete(request);
        break;
      }
      case Event::Kind::kFlowFailed: fail_flow(*flow, event.failure); break;
    }
  }
}

void Engine::complete(Request& request) {
  if (!request.linked()) return;  // failed before, with its flow
  request.unlink();
  request.state.store(Request::State::kDone, std::memory_order_release);
}

void Engine::fail(Request& request, Failure failure) {
  request.unlink();
  request.failure = failure;
  request.state.store(Request::State::kFailed, std::memory_order_release);
}

void Engine::fail_flow(Flow& flow, Failure failure) {
  if (failure == Failure::kNone) failure = Failure::kLocal;
  flow.failure_.store(failure, std::memory_order_release);
  while (Request* request = flow.outstanding_.front()) fail(*request, failure);
}

}  // namespace weft
