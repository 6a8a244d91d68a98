// SPDX-License-Identifier: Apache-2.0
// The reliable, congestion-controlled, multipath association of two endpoints: a pure state
// machine.
//
// It owns no socket, clock, thread or randomness. Whoever drives it (engine/, or a test) calls, in
// a loop:
//
//   1. commands: open_*, close_*, add_region, post_receive, post_send    at any time
//   2. inputs: handle_*(now, ...)                 for everything the fabric delivered
//   3. handle_timeout(now)                        when poll_timeout() <= now
//   4. poll_transmit(now, outbox)                 until the outbox comes back empty; what it holds
//                                                 is posted before anything else, and what the
//                                                 fabric did not take goes to handle_refused
//   5. poll_event(event)                          until false; a receive is reported only after
//                                                 the ack that covers it left through step 4
//
// `now` never goes back. Between two loops the caller may sleep until poll_timeout() or the next
// arrival.
//
// Inside: Sender (what we send: matching grants, segments, paths, loss), Receiver (what we receive:
// grants, claims, acks), Regions (memory the two ends may name), Liveness (is there anybody). They
// meet only here.
//
// Threading: one thread at a time. Ownership: buffers stay the caller's; a source is read until
// kSent, a destination written until kReceived, kFlowFailed + close, or close. Failure: a flow
// fails alone unless the peer is gone; after kFlowFailed every call on that flow but close answers
// false.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multipath/connection/types.h"
#include "multipath/path/path.h"

namespace weft {

class Connection {
 public:
  explicit Connection(const ConnectionConfig& config);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // --- Commands.

  // A flow that we receive; the id goes to the peer out of band. kMaxRegions-like bound: 16384
  // flows; then false.
  bool open_receive_flow(FlowId* id);
  // A flow that we send, as the peer named it. False for an id that is in use or impossible.
  bool open_send_flow(FlowId id);
  // The flow ends for us at once: nothing of it is touched any more on a datagram fabric; on a
  // placing one poll quiet() before its memory is given up. The peer is told, and told again, until
  // it confirms.
  void close_send_flow(FlowId id);
  void close_receive_flow(FlowId id);

  // Memory that grants and sends may name. False when kMaxRegions are in use.
  bool add_region(std::byte* base, uint64_t bytes, std::span<const uint64_t> keys, RegionId* id);
  // Flows with unfinished messages in it fail at once (kDeregistered).
  void remove_region(RegionId id);

  // Receives of a flow are numbered from 0 in the order of these calls. False when the flow failed,
  // when kMaxReceives or kMaxPartsInFlow are outstanding, or when a part is not inside its region.
  bool post_receive(FlowId flow, std::span<const ReceivePart> parts, Token token);
  // False when the flow failed or the match is not open (unknown grant, part taken, larger than its
  // receive).
  bool post_send(const MatchedSend& send);

  // --- Inputs.

  // The caller had not looked at the fabric for so long before it found what it now hands over:
  // acks say so, since the RTT samples of whom they go to contain it.
  void handle_poll_gap(Duration gap);
  // A whole control datagram whose common header was checked.
  void handle_control(Time now, std::span<const std::byte> datagram);
  // Statements that came over the out-of-band stream (the peer's last word).
  void handle_statements(Time now, std::span<const std::byte> statements);
  void handle_probe(Time now, const wire::ProbeHeader& probe, bool marked);
  // Datagram fabrics: where the payload of this header belongs, or null for nowhere. After a
  // non-null answer the caller copies and then calls handle_arrival with the same header, before
  // poll_transmit.
  std::byte* claim(Time now, const wire::DataHeader& header);
  void handle_arrival(Time now, const wire::DataHeader& header, bool marked);
  // Placing fabrics: a write has landed.
  void handle_landing(Time now, PathIndex path, uint32_t epoch, uint32_t immediate, uint32_t bytes);
  void handle_path_killed(Time now, PathIndex path, uint32_t epoch);
  void handle_path_broken(Time now, PathIndex path, uint32_t epoch);
  // The fabric no longer reads this post's source.
  void handle_completion(uint64_t cookie);
  // These posts were not taken (a suffix of an outbox): they were never sent.
  void handle_refused(std::span<const SegmentPost> posts);
  // The out-of-band stream ended: a hint, to be checked at once.
  void handle_peer_hint(Time now);
  // The application asks in vain for a grant: for a second the peer must show that it lives.
  void handle_wanted(Time now);
  // The peer said goodbye: its last word has been handled, and nothing more will come.
  void handle_peer_gone(Time now);
  void handle_timeout(Time now);

  // --- Outputs.

  void poll_transmit(Time now, Outbox& out);
  Time poll_timeout() const;
  bool poll_event(Event* event);

  // The statements that must reach the peer even if we never speak again, in as many chunks as they
  // need.
  std::vector<std::vector<std::byte>> last_word() const;

  // --- Facts.

  // No message, receive, unconfirmed statement or kill is open: nothing will be sent unless
  // something happens.
  bool quiet() const;
  // A flow was closed here, and the peer, which may yet live, has not said that it knows.
  bool ends_unconfirmed() const;
  std::span<const Path> paths() const;
  uint64_t segments_lost() const;
  uint64_t segments_retransmitted() const;
  Time last_heard() const;
  // What it waits for, in words: for the log line of a hang and for a test that failed.
  std::string describe(Time now) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weft
