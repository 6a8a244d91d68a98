// SPDX-License-Identifier: Apache-2.0
// The sending half of a connection: grants received, matched sends, who goes next, what came of it.
//
// A grant is kept per flow until every part of it was matched and completed; it is surfaced to the
// caller, in number order, once the regions it names are known. A matched send becomes a
// SendMessage. Urgent messages (of one segment, or hinted to be latency-bound and not long) go
// first, in order; the others share the window by deficit round robin between flows, a burst at a
// time, each burst on the path the selector picks. A message is complete when the receiver has all
// of it and nothing reads its source any more.
//
// Failure: a flow fails alone, with everything on it; its messages linger (reading nothing) until
// their copies are settled, because their slots name them to the receiver. Bounds: kMaxReceives
// grants a flow, 4096 messages a connection.
#pragma once

#include <memory>
#include <vector>

#include "multipath/connection/ledger.h"
#include "multipath/connection/regions.h"
#include "multipath/connection/send_message.h"
#include "multipath/connection/types.h"

namespace weft {

struct TurnHook : Hook {};    // in the round robin
struct GrantHook : Hook {};   // may have grants to surface
struct SeenHook : Hook {};    // "grants seen" is due
struct FailHook : Hook {};    // a failure is to be reported
struct EndHook : Hook {};     // closed here; the peer has not confirmed
struct EndDueHook : Hook {};  // its end is to be told (again)

struct SendFlowState : TurnHook, GrantHook, SeenHook, FailHook, EndHook, EndDueHook {
  struct Granted {
    wire::Grant grant;
    bool known = false;    // this slot of the ring holds a grant
    uint8_t taken = 0;     // parts matched, one bit each
    uint8_t complete = 0;  // parts whose message is over
    std::array<SendMessage*, wire::kMaxParts> message{};
  };

  FlowId id = 0;
  std::unique_ptr<std::array<Granted, kMaxReceives>>
      grants;                   // by number; made with the first grant
  uint32_t grants_below = 0;    // every grant below this was taken in
  uint32_t surfaced_below = 0;  // and below this, shown to the caller
  uint32_t open_messages = 0;
  IntrusiveList<SendMessage, ReadyHook> ready;
  int64_t deficit = 0;
  bool closed = false;
  bool peer_closed = false;
  bool end_seen = false;  // the receiver confirmed that the flow is over
  Failure failure = Failure::kNone;

  Granted* find(uint32_t number) {
    if (!grants) return nullptr;
    Granted& g = (*grants)[number % kMaxReceives];
    return g.known && g.grant.number == number ? &g : nullptr;
  }
};

class Sender {
 public:
  Sender(const ConnectionConfig& config, Regions& regions);

  bool open_flow(FlowId id);
  void close_flow(FlowId id);
  bool post(const MatchedSend& send);
  void region_removed(RegionId id);
  void fail_all(Failure failure);

  // What the peer says.
  void on_grant(Time now, const wire::Grant& grant);
  void on_region_known();
  void on_path_ack(const Report& report, const wire::PathAck& ack);
  void on_message_ack(const Report& report, const wire::MessageAck& ack);
  void on_flow_ack(const Report& report, const wire::FlowAck& ack);
  void on_receiver_ended(const Report& report, const wire::FlowState& state);
  void on_end_seen(const wire::FlowStateSeen& seen);
  // Once all statements of a packet were handled.
  void after_reports(Time now);
  // What touched messages deserve: completion, another turn, release.
  void settle_touched();

  void handle_refused(const SegmentPost& post);
  void handle_completion(uint64_t cookie);

  // Probes and data, until the outbox, the window or the work ends.
  void transmit(Time now, Outbox& out);
  bool statements_due(Time now) const {
    return seen_deadline() <= now || !records_.empty() || !ends_due_.empty() ||
           ledger_.queries_due();
  }
  // That grants were seen is no news for anybody who waits: it goes with something else, or late.
  Time seen_deadline() const { return seen_.empty() ? Time::never() : seen_deadline_; }
  bool ends_unconfirmed() const { return !ends_.empty(); }
  bool unconfirmed() const { return unrecorded_ > 0 || !ends_.empty(); }
  void repeat();
  bool compose(wire::ControlWriter& out);
  bool poll_event(Event* event);

  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  bool idle() const { return messages_.in_use() == 0; }
  uint32_t open_messages() const { return open_messages_; }
  const TrafficHints& hints() const { return hints_; }  // of the latest send
  bool wants_peer() const { return open_messages_ > 0; }
  void add_last_word(std::vector<wire::FlowState>* out) const;

 private:
  SendFlowState* flow(FlowId id) const;
  void fail(SendFlowState& flow, Failure failure);
  void abandon_messages(SendFlowState& flow);
  void make_ready(SendMessage& message);
  // Returns whether any of it was news.
  bool mark_range(SendMessage& message, uint32_t base, const uint64_t* bits, int words);
  void complete(SendMessage& message);
  void end_message(SendMessage& message);
  SendMessage* next_message();
  bool send_burst(SendMessage& message, Path& path, Time now, Outbox& out);
  void fill_post(SegmentPost& post, const SendMessage& message, uint32_t segment, const Path& path,
                 uint64_t number) const;
  void transmit_probes(Time now, Outbox& out);
  bool surface(SendFlowState& flow, Event* event);
  wire::FlowState end_state(const SendFlowState& flow) const;

  const ConnectionConfig& config_;
  Regions& regions_;
  SendMessagePool messages_;
  Ledger ledger_;
  std::vector<std::unique_ptr<SendFlowState>> flows_;  // by flow_index
  IntrusiveList<SendMessage, ReadyHook> urgent_;
  IntrusiveList<SendFlowState, TurnHook> turns_;
  IntrusiveList<SendFlowState, GrantHook> granted_;
  IntrusiveList<SendFlowState, SeenHook> seen_;
  IntrusiveList<SendFlowState, FailHook> failed_;
  IntrusiveList<SendFlowState, EndHook> ends_;
  IntrusiveList<SendFlowState, EndDueHook> ends_due_;
  IntrusiveList<SendMessage, RecordHook> records_;
  IntrusiveList<SendMessage, DoneHook> ending_;  // over, but their sources may still be read
  IntrusiveList<SendMessage, DoneHook> done_;
  Time seen_deadline_;  // when the first of seen_ is due
  uint32_t unrecorded_ = 0;
  uint32_t open_messages_ = 0;
  TrafficHints hints_;
};

}  // namespace weft
