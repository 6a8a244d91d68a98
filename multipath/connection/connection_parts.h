// SPDX-License-Identifier: Apache-2.0
// What a Connection is made of, and where its parts meet: the statements of a control packet are
// handed to whom they concern, control packets are composed from what each part has to say, and
// statements that nobody confirmed are repeated.
//
// Private to connection.cc and connection_parts.cc.
#pragma once

#include <vector>

#include "multipath/connection/connection.h"
#include "multipath/connection/liveness.h"
#include "multipath/connection/path_kill.h"
#include "multipath/connection/receiver.h"
#include "multipath/connection/regions.h"
#include "multipath/connection/sender.h"

namespace weft {

struct Connection::Parts {
  explicit Parts(const ConnectionConfig& c)
      : config(c),
        sender(config, regions),
        receiver(config, regions),
        kill(config, sender.ledger()),
        liveness(config.peer_timeout) {}

  // The handler of read_statements.
  void on(const wire::Region& s) {
    if (regions.learn(s)) sender.on_region_known();
  }
  void on(const wire::RegionSeen& s) { regions.confirm(s); }
  void on(const wire::Grant& s) { sender.on_grant(report.now, s); }
  void on(const wire::GrantsSeen& s) { receiver.on_grants_seen(s); }
  void on(const wire::Record& s) { receiver.on_record(report.now, s); }
  void on(const wire::PathAck& s) { sender.on_path_ack(report, s); }
  void on(const wire::MessageAck& s) { sender.on_message_ack(report, s); }
  void on(const wire::FlowAck& s) { sender.on_flow_ack(report, s); }
  void on(const wire::Query& s) { receiver.on_query(report.now, s); }
  void on(const wire::PathState& s) { kill.on_statement(report, s); }
  void on(const wire::FlowState& s);
  void on(const wire::FlowStateSeen& s);
  void on(const wire::Credit&) {}    // no receiver-driven law yet
  void on(const wire::OneSided&) {}  // the endpoint offers none yet
  void on(const wire::Ping& s) { pong = s.sequence, pong_due = true; }
  void on(const wire::Pong&) {}

  void fail_all(Failure failure);
  void kill_if(bool under_way) {
    if (under_way && config.offloads.places) kill.start_all();
  }
  void take_kills();
  bool waits_for_peer() const { return sender.wants_peer() || receiver.expects(); }
  bool unconfirmed() const {
    return regions.unconfirmed() || sender.unconfirmed() || receiver.unconfirmed() ||
           kill.pending();
  }
  bool control_due(Time now) const;
  bool compose(Time now, wire::ControlWriter& out);
  bool transmit_control(Time now, Outbox& out);
  void schedule_repeat(Time now);

  const ConnectionConfig config;
  Regions regions;
  Sender sender;
  Receiver receiver;
  PathKill kill;
  Liveness liveness;
  Report report;  // of the packet being handled
  std::vector<wire::FlowStateSeen> ends_seen;
  Duration poll_gap{};  // the longest since the last report
  bool pong_due = false;
  uint32_t pong = 0;
  bool ping_wanted = false;
  uint32_t pings = 0;
  Time repeat_at = Time::never();
  Duration repeat_every{};
  bool failed = false;  // the peer is dead: nothing is sent any more
};

}  // namespace weft
