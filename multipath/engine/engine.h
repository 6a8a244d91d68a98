// SPDX-License-Identifier: Apache-2.0
// Drives connections over one fabric, with a clock handed in.
//
//                    flows' rings, dirty stack                 Connection (pure)
//   application  ---- commands ------------------>  Engine  -- handle_*, poll_* -->  state
//                <--- grants, request states -----    |
//                                                     +------- post, poll -------->  Fabric
//
// One call of progress(now) carries out the waiting commands; then, a bounded number of times:
// polls the fabric and services every connection that has something to do (input, commands, a
// time-out): time-outs, then what it wants to send, then its events. A connection without work
// costs nothing: it is in no list, and its deadline is one word in a dense table.
//
// Invariants: what is posted for a connection is posted before its events are reported, so a
// receive is reported after its ack has left. A datagram that does not name a connection of ours
// *and* its secret token touches no connection. Between a claim and the copy into it no other input
// reaches the connection: control and probes of a batch are handled after the batch was placed.
//
// Threading: one caller at a time (the endpoint's lock); submit() and commands_waiting() from any
// thread. No clock, thread, socket or lock in here, so a test drives it over transport/sim with a
// virtual clock. Ownership: connections are the engine's, flows belong to who opened them and must
// be closed here first. Failure: nothing fails; a fabric that takes nothing is offered the same
// again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "multipath/connection/connection.h"
#include "multipath/engine/dirty_stack.h"
#include "multipath/engine/flow.h"
#include "transport/base/intrusive_list.h"
#include "transport/base/result.h"
#include "transport/fabric.h"

namespace weft {

// A connection as the engine knows it. Callers treat it as opaque but for `user`.
struct Member : Hook {
  wire::Address own;  // how the peer addresses it
  LinkId link = 0;
  std::unique_ptr<Connection> connection;  // null while the address is only reserved
  std::vector<Flow*> send_flows;           // by flow_index
  std::vector<Flow*> receive_flows;
  void* user = nullptr;  // the opener's own
};

struct EngineCounters {
  uint64_t strangers = 0;  // datagrams without a connection of ours or without its token
  uint64_t malformed = 0;  // datagrams that the wire format does not allow
  // control packets that the fabric did not take; their news is said again
  uint64_t controls_refused = 0;
};

class Engine final : private FabricSink {
 public:
  static constexpr size_t kMaxMembers = 1u << 16;

  // A clock to look at when datagrams arrive: a loop may have begun long before, and an arrival
  // that is dated back shortens round trips. Null: time only passes between calls of progress.
  using Clock = Time (*)();

  explicit Engine(Fabric& fabric, Clock clock = nullptr);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- Connections.

  // A name for a connection to come; null when kMaxMembers are in use. `token` is random, and
  // secret.
  Member* reserve(uint64_t token);
  // Precondition: reserved and not yet attached; link is connected.
  void attach(Member& member, LinkId link, const ConnectionConfig& config);
  // Forgets a reservation or a connection. Its flows have been closed, its link is the caller's to
  // close.
  void detach(Member& member);

  void handle_peer_hint(Member& member, Time now);
  void handle_peer_gone(Member& member, Time now);
  void handle_statements(Member& member, Time now, std::span<const std::byte> statements);

  // --- Flows. Null when the connection refuses.

  std::unique_ptr<SendFlow> open_send_flow(Member& member, FlowId id);
  std::unique_ptr<ReceiveFlow> open_receive_flow(Member& member);
  // The flow is out of every list here and nothing of it will be touched again: it may be
  // destroyed.
  void close_flow(Flow& flow);

  Status register_memory(Member& member, const MemoryRange& range, Registration* out);
  void deregister_memory(Registration& registration);

  // --- Driving.

  // Returns whether there was anything to do. `now` never goes back; an earlier one counts as the
  // latest.
  bool progress(Time now);
  // When progress must be called again if nothing happens meanwhile: a time in the past means at
  // once.
  Time poll_timeout() const;

  // Any thread: commands of this flow wait in its ring.
  void submit(Flow& flow) { dirty_.push(flow); }
  bool commands_waiting() const { return !dirty_.empty(); }

  const EngineCounters& counters() const { return counters_; }

  // For flows, while their commands are drained.
  void carry_out(SendFlow& flow, const MatchedSend& send);
  void carry_out(ReceiveFlow& flow, Request& request, std::span<const ReceivePart> parts);
  // A send of this flow found no grant. Told at most once every kRefusalPeriod, however often it
  // happens.
  void note_refused(SendFlow& flow);
  static constexpr Duration kRefusalPeriod = milliseconds(250);

 private:
  // What one datagram of a batch turned out to be; Datagram::cookie is its place.
  struct Decoded {
    Member* member = nullptr;  // null: nothing more to do with it
    wire::Kind kind = wire::Kind::kData;
    wire::DataHeader data;
    wire::ProbeHeader probe;
  };

  void receive(std::span<Datagram> batch) override;
  void arrived(std::span<const Datagram> batch) override;
  void landed(std::span<const Landing> batch) override;
  void completed(std::span<const Completion> batch) override;
  void path_changed(std::span<const PathChange> batch) override;

  Member* find(const wire::Address& to) const;
  Member* find_link(LinkId link);
  void decode(Datagram& datagram, Decoded* out);

  void drain_commands();
  void forgive_refusals();
  void activate_due();
  void activate(Member& member);
  void look_at_clock();
  bool service_active(bool timers);
  bool service(Member& member, bool timers);  // whether the connection wants another turn
  bool post_outbox(Member& member);
  bool post_controls(Member& member);
  bool post_segments(Member& member);
  void deliver_events(Member& member);
  void note_deadline(Member& member);

  static Flow* find_flow(Member& member, FlowId id, wire::FlowRole role);
  static std::vector<Flow*>& flows_of(Member& member, wire::FlowRole role);
  static void complete(Request& request);
  static void fail(Request& request, Failure failure);
  static void fail_flow(Flow& flow, Failure failure);

  Fabric& fabric_;
  const Clock clock_;
  Time now_{INT64_MIN};
  Duration poll_gap_{};  // between the last two calls of progress
  DirtyStack dirty_;
  std::vector<std::unique_ptr<Member>> members_;  // by index; the low 16 bits of a connection id
  // by the same index; never() for who waits for nothing
  std::vector<Time> deadlines_;
  std::vector<uint32_t> free_members_;
  Time next_deadline_ = Time::never();  // no deadline is earlier
  IntrusiveList<Member> active_;        // has work now
  IntrusiveList<Member> again_;         // wants another turn in the next round
  std::vector<SendFlow*> refused_;      // whose refused_ is set and known
  Time forgive_at_ = Time::never();     // clears them, so that they may tell again
  bool blocked_ = false;                // the fabric took less than it was given
  bool posted_ = false;
  std::unordered_map<LinkId, Member*> links_;
  LinkId last_link_ = 0;
  Member* last_link_member_ = nullptr;
  std::vector<Decoded> decoded_;
  std::unique_ptr<Outbox> outbox_;
  EngineCounters counters_;
};

}  // namespace weft
