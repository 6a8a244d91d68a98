// SPDX-License-Identifier: Apache-2.0
// The receiving half of a connection: receives posted, grants told, segments claimed and arrived,
// acks owed.
//
// A receive has a number in its flow and up to 8 parts, each a buffer with a tag. On a datagram
// fabric the header of a segment claims its place once; whatever cannot claim (a duplicate, a
// stranger, too early) is written nowhere. On a placing fabric the NIC has written already, and the
// immediate data says what it was: a short message names flow, number and part, a long one a slot
// that the sender's record explains; what lands before its record waits in 64 bits a slot. A
// receive is reported only after an ack that covers it went out.
//
// Every report carries `stamp`, the count of events here, so that the sender can order what it is
// told. Nothing is allocated for a message before its receive was posted. Bounds: kMaxReceives
// receives and kMaxPartsInFlow parts a flow, 16384 flows.
#pragma once

#include <memory>
#include <vector>

#include "multipath/connection/regions.h"
#include "multipath/connection/types.h"
#include "transport/base/bit_window.h"
#include "transport/base/intrusive_list.h"
#include "transport/base/pool.h"
#include "transport/wire/immediate.h"

namespace weft {

struct ReceiveFlowState;
struct Receive;

struct PartAckHook : Hook {};  // its arrivals are to be reported
struct PartState : PartAckHook {
  uint32_t pool_index = 0;
  uint32_t pool_generation = 0;
  Receive* receive = nullptr;
  uint8_t index = 0;
  std::byte* base = nullptr;
  uint64_t room = 0;
  RegionId region = 0;
  int32_t tag = 0;

  bool sized = false;  // the three below are known
  uint64_t bytes = 0;
  uint32_t segment_bytes = 0;
  uint32_t segments = 0;
  uint32_t latest = 0;
  Time latest_at;
  BitWindow<kSegmentWindow> claimed;  // datagram fabrics: a copy owns the place
  BitWindow<kSegmentWindow> arrived;
  bool complete() const { return sized && arrived.base() == segments; }
};

struct FinishHook : Hook {};
struct Receive : FinishHook {
  ReceiveFlowState* flow = nullptr;
  uint32_t number = 0;
  uint8_t parts = 0;
  uint8_t left = 0;  // parts not complete
  Token token = 0;
  bool reported = false;  // to the caller; it stays until all before it are complete
  std::array<PartState*, wire::kMaxParts> part{};
};

struct GrantDueHook : Hook {};  // has grants to tell
struct FlowAckHook : Hook {};
struct RFailHook : Hook {};
struct REndHook : Hook {};
struct REndDueHook : Hook {};
struct ReceiveFlowState : GrantDueHook, FlowAckHook, RFailHook, REndHook, REndDueHook {
  FlowId id = 0;
  std::unique_ptr<std::array<Receive, kMaxReceives>>
      receives;  // by number; made with the first one
  std::unique_ptr<Pool<PartState, kMaxPartsInFlow>> parts;
  uint32_t posted_below = 0;
  uint32_t complete_below = 0;  // all receives below are complete
  uint32_t reported_below = 0;  // and below this, told to the caller: their slots are free
  uint32_t told_below = 0;      // grants told at least once since the last repeat
  uint32_t seen_below = 0;      // grants the sender confirmed
  bool closed = false;
  bool peer_closed = false;
  bool end_seen = false;  // the sender confirmed that the flow is over
  Failure failure = Failure::kNone;

  Receive* find(uint32_t number) {
    if (!receives || number - complete_below >= posted_below - complete_below) return nullptr;
    return &(*receives)[number % kMaxReceives];
  }
};

// The packet numbers seen on one path of the peer.
struct PathArrivals {
  BitWindow<512> seen;
  uint64_t largest = 0;
  Time largest_at;
  uint64_t reported = 0;  // the largest of the last report
  uint32_t epoch = 0;
  uint32_t marks = 0;
  bool due = false;
};

class Receiver {
 public:
  Receiver(const ConnectionConfig& config, Regions& regions);

  bool open_flow(FlowId* id);
  // Returns whether something granted there was not complete: its copies may still be under way.
  bool close_flow(FlowId id);
  bool post(FlowId id, std::span<const ReceivePart> parts, Token token);
  bool region_removed(RegionId id);  // returns as close_flow does
  void fail_all(Failure failure);

  // Datagram fabrics.
  std::byte* claim(Time now, const wire::DataHeader& header);
  void on_arrival(Time now, const wire::DataHeader& header, bool marked);
  void on_probe(Time now, const wire::ProbeHeader& probe, bool marked);
  // Placing fabrics.
  void on_landing(Time now, PathIndex path, uint32_t epoch, uint32_t immediate, uint32_t bytes);

  // What the sender says.
  void on_grants_seen(const wire::GrantsSeen& seen);
  void on_record(Time now, const wire::Record& record);
  void on_query(Time now, const wire::Query& query);
  void on_sender_ended(const wire::FlowState& state);
  void on_end_seen(const wire::FlowStateSeen& seen);

  uint64_t stamp() const { return stamp_; }
  bool statements_due(Time now) const;
  // What will be said is more than that probes arrived.
  bool has_news() const {
    return !parts_due_.empty() || !flows_due_.empty() || !grants_due_.empty();
  }
  // When the next of them is due.
  Time deadline() const {
    return ack_now_ || grants_now_ ? Time{INT64_MIN} : earlier(ack_deadline_, grants_deadline_);
  }
  // Before anything is sent: what may wait a little begins to wait now.
  void start_holds(Time now);
  bool ends_unconfirmed() const { return !ends_.empty(); }
  bool unconfirmed() const { return unseen_grants_ > 0 || !ends_.empty(); }
  void repeat();
  // False when the packet is full and something is left.
  bool compose(Time now, wire::ControlWriter& out);
  // Everything due has left: what is complete may be reported. The ack of a small message may be
  // due later.
  void acks_left();
  bool poll_event(Event* event);

  bool quiet() const { return !ack_now_ && owed_ == 0 && finishing_.empty(); }
  uint32_t open_receives() const { return open_receives_; }
  bool expects() const { return open_receives_ > 0; }
  void add_last_word(std::vector<wire::FlowState>* out) const;

 private:
  struct Slot {
    uint64_t early = 0;  // indices below 64 that landed before the record
    uint8_t generation = 0;
    bool known = false;
    uint32_t flow = 0, number = 0;
    uint8_t part = 0;
  };

  ReceiveFlowState* flow(FlowId id) const;
  ReceiveFlowState* flow_at(uint32_t index) const;
  PartState* open_part(ReceiveFlowState& flow, uint32_t number, uint32_t part);
  bool size_part(PartState& part, uint64_t bytes, uint32_t segment_bytes);
  void arrive(Time now, PartState& part, uint32_t segment);
  void finish_part(PartState& part);
  void land_short(Time now, const wire::Immediate& imm, uint32_t bytes);
  void land_long(Time now, const wire::Immediate& imm, uint32_t bytes);
  void see_packet(Time now, PathIndex path, uint64_t packet, bool marked);
  void acknowledge_again(Time now, ReceiveFlowState& flow, uint32_t number, uint32_t part);
  static constexpr Duration kAtOnce{};
  static constexpr Duration kShortHold = microseconds(50);
  // The ack of an arrival: no later than `hold` from now.
  void owe_ack(Time now, Duration hold);
  void adapt_acks(Time now);
  void fail(ReceiveFlowState& flow, Failure failure);
  void drop_receives(ReceiveFlowState& flow);
  void release(Receive& receive);
  static bool has_spare_grants(const ReceiveFlowState& flow);
  bool tell_grants(ReceiveFlowState& flow, wire::ControlWriter& out);
  bool compose_acks(Time now, wire::ControlWriter& out);
  wire::FlowState end_state(const ReceiveFlowState& flow) const;

  const ConnectionConfig& config_;
  Regions& regions_;
  std::vector<std::unique_ptr<ReceiveFlowState>> flows_;  // by flow_index
  uint32_t next_flow_ = 0;
  std::vector<PathArrivals> paths_;
  std::vector<PathIndex> paths_due_;
  std::vector<Slot> slots_;  // placing fabrics; made with the first long landing or record
  IntrusiveList<PartState, PartAckHook> parts_due_;
  IntrusiveList<ReceiveFlowState, FlowAckHook> flows_due_;
  IntrusiveList<ReceiveFlowState, GrantDueHook> grants_due_;
  IntrusiveList<ReceiveFlowState, RFailHook> failed_;
  IntrusiveList<ReceiveFlowState, REndHook> ends_;
  IntrusiveList<ReceiveFlowState, REndDueHook> ends_due_;
  IntrusiveList<Receive, FinishHook> finishing_;  // complete, ack not yet out
  IntrusiveList<Receive, FinishHook> done_;       // to be reported
  uint64_t stamp_ = 1;
  // An ack is due at so many arrivals, or when its time is up.
  static constexpr uint32_t kAckEveryLeast = 32, kAckEveryMost = 128;
  uint32_t ack_every_ = kAckEveryLeast;
  uint32_t owed_ = 0;
  Time acked_at_{INT64_MIN / 2};
  bool ack_now_ = false;
  Time ack_deadline_ = Time::never();
  bool grants_now_ = false;
  Time grants_deadline_ = Time::never();
  uint32_t open_receives_ = 0;
  uint32_t unseen_grants_ = 0;
};

}  // namespace weft
