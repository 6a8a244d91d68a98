// SPDX-License-Identifier: Apache-2.0
// The application's half of a flow (match, take a request, push a command) and the engine's half
// (drain).
#include "multipath/engine/flow.h"

#include <new>

#include "multipath/engine/engine.h"

namespace weft {

void Flow::submit() { engine_.submit(*this); }

Answer SendFlow::send(const std::byte* data, uint64_t bytes, int32_t tag,
                      const Registration* registration, Request** request,
                      const TrafficHints& hints) {
  *request = nullptr;
  if (failure() != Failure::kNone) return Answer::kFailed;
  if (bytes > 0) {
    if (!registration || registration->member != &member_) return Answer::kInvalid;
    if (!registration->covers(data, bytes)) return Answer::kInvalid;
  }
  Lane* lane = lane_.load(std::memory_order_acquire);
  if (lane) {
    while (!lane->matcher.full() && lane->grants.front()) {
      lane->matcher.add(*lane->grants.front());
      lane->grants.pop();
    }
  }
  Request* taken = lane ? requests_.take() : nullptr;  // first: a match cannot be taken back
  if (lane && !taken) return Answer::kAgain;
  Matcher::Match match;
  const auto matched = lane ? lane->matcher.match(tag, bytes, &match) : Matcher::Answer::kNotYet;
  if (!taken || matched != Matcher::Answer::kMatched) {
    if (taken) requests_.release(*taken);
    if (matched == Matcher::Answer::kTooLarge) return Answer::kInvalid;
    if (!refused_.load(std::memory_order_relaxed) &&
        !refused_.exchange(true, std::memory_order_relaxed)) {
      submit();
    }
    return Answer::kAgain;
  }
  taken->state.store(Request::State::kPending, std::memory_order_relaxed);
  taken->flow = this;
  taken->parts = 1;
  taken->sizes[0] = bytes;
  MatchedSend command;
  command.flow = id_;
  command.number = match.number;
  command.part = match.part;
  command.source = bytes > 0 ? data : nullptr;
  command.bytes = bytes;
  if (bytes > 0) {
    command.local_key = registration->keys.local;
    command.region = registration->region;
  }
  command.token = reinterpret_cast<Token>(taken);
  command.hints = hints;
  lane->commands.push(command);  // has room: see the head of flow.h
  submit();
  *request = taken;
  return Answer::kPosted;
}

void SendFlow::drain(Engine& engine) {
  if (refused_.load(std::memory_order_relaxed)) engine.note_refused(*this);
  Lane* lane = lane_.load(std::memory_order_relaxed);
  if (!lane) return;
  while (const MatchedSend* command = lane->commands.front()) {
    engine.carry_out(*this, *command);
    lane->commands.pop();
  }
}

bool SendFlow::deliver_grant(const wire::Grant& grant) {
  Lane* lane = lane_.load(std::memory_order_relaxed);
  if (!lane) {
    lane = new (std::nothrow) Lane;
    if (!lane) return false;
    lane_.store(lane, std::memory_order_release);
  }
  return lane->grants.push(grant);
}

Answer ReceiveFlow::receive(std::span<const ReceiveBuffer> parts, Request** request) {
  *request = nullptr;
  if (failure() != Failure::kNone) return Answer::kFailed;
  if (parts.empty() || parts.size() > wire::kMaxParts) return Answer::kInvalid;
  Command command;
  for (size_t i = 0; i < parts.size(); ++i) {
    const ReceiveBuffer& from = parts[i];
    ReceivePart& to = command.part[i];
    to.tag = from.tag;
    if (from.size == 0) continue;  // takes empty messages: no memory, whatever the pointer says
    if (!from.registration || from.registration->member != &member_) return Answer::kInvalid;
    if (!from.registration->covers(from.base, from.size)) return Answer::kInvalid;
    to.base = from.base;
    to.size = from.size;
    to.region = from.registration->region;
  }
  if (parts_out_ + parts.size() > kMaxPartsInFlow) return Answer::kAgain;
  Request* taken = requests_.take();
  if (!taken) return Answer::kAgain;
  taken->state.store(Request::State::kPending, std::memory_order_relaxed);
  taken->flow = this;
  taken->parts = static_cast<uint8_t>(parts.size());
  parts_out_ += taken->parts;
  command.request = taken;
  if (!commands_) commands_ = std::make_unique<Commands>();
  commands_->push(command);  // has room: see the head of flow.h
  submit();
  *request = taken;
  return Answer::kPosted;
}

void ReceiveFlow::drain(Engine& engine) {
  if (!commands_) return;
  while (const Command* command = commands_->front()) {
    engine.carry_out(*this, *command->request,
                     std::span(command->part).first(command->request->parts));
    commands_->pop();
  }
}

}  // namespace weft
