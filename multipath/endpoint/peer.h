// SPDX-License-Identifier: Apache-2.0
// What the endpoint keeps for each other end: peers (one a connection), listeners and connectors.
//
// Plain state; the rules are in peer_table.h. Everything here is touched under the set-up mutex
// only.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "multipath/endpoint/dial_race.h"
#include "multipath/endpoint/oob_stream.h"
#include "multipath/endpoint/served_requests.h"
#include "multipath/endpoint/size_search.h"
#include "multipath/engine/engine.h"
#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/wire/handshake.h"

namespace weft {

// Flows with the same key share a connection, in both directions.
struct PeerKey {
  uint64_t context = 0;  // ours
  uint64_t remote_context = 0;
  uint64_t remote_incarnation = 0;
  uint32_t remote_device = 0;
  int32_t traffic_class = 0;  // the connector's
  bool answering = false;     // to oneself there are two objects: who dialed, and who answered

  auto operator<=>(const PeerKey&) const = default;
};

class Connector;

struct Peer {
  enum class State : uint8_t {
    kDialing,  // our hello is on its way, or waits for the TCP stream
    // nothing is under way until retry_at: the other end's attempt is expected, or ours failed
    kWaiting,
    kUp,  // both ends have a connection; a stream that breaks is mended when it is needed
    // no new flows. What flows there were may go on, if only the peer's way of speaking is over
    kEnded,
  };

  PeerKey key;
  State state = State::kDialing;
  IpAddress address;
  uint16_t port = 0;
  std::string name;               // for words: address, device, context
  OobStream* stream = nullptr;    // on which we speak; null: none yet, or it is being mended
  OobStream* spare = nullptr;     // the one before, on which the peer may still speak
  std::vector<OobStream*> dials;  // that race, oldest first
  DialRace race;
  OobStream* courier = nullptr;  // of a kUp peer: asks to take the place of the stream
  bool mending = false;          // of a kUp peer: a stream is wanted
  int looks = 0;                 // at a stream that said hello, or at the courier
  int greetings = 0;             // hellos that got no answer
  int unknown = 0;               // couriers that were turned away
  bool by_hello = false;         // it came up by the peer's hello
  Time look_at = Time::never();  // whether what we said has arrived
  uint64_t written = 0;          // on the stream at the last look
  uint64_t acknowledged = 0;

  Member* member = nullptr;
  LinkId link = 0;
  bool has_link = false;
  LinkAddress link_address;  // ours
  wire::Address remote;      // how the peer is addressed; of a kUp one

  uint16_t probe_port = 0;             // of the peer; 0: it returns no size probes
  uint32_t segment_bytes = 0;          // what the way to it carries; 0: not known
  std::unique_ptr<SizeSearch> search;  // while that is being found out
  uint64_t search_number = 0;

  Time deadline = Time::never();  // of the attempt
  Time retry_at = Time::never();
  Duration backoff{};
  Status last;                // why the attempt before this one failed
  bool said_goodbye = false;  // the peer did

  std::vector<Connector*> connectors;  // neither done nor failed
  ServedRequests served;
  std::vector<std::unique_ptr<Flow>> flows;
  std::vector<std::unique_ptr<Registration>> registrations;
};

class Listener {
 public:
  struct Waiting {
    Peer* peer = nullptr;
    uint32_t request = 0;
  };
  uint64_t context = 0;
  wire::Cookie cookie{};
  std::deque<Waiting> waiting;  // who wants to be accepted, in order; at most kMaxWaiting

  static constexpr size_t kMaxWaiting = 4096;
};

class Connector {
 public:
  enum class State : uint8_t { kWaiting, kOpening, kDone, kFailed };

  uint64_t context = 0;
  Peer* peer = nullptr;  // null once done or failed
  wire::Cookie cookie{};
  std::string target;  // the listener, for words
  State state = State::kWaiting;
  uint32_t request = 0;
  SendFlow* flow = nullptr;  // when kDone
  Status status;             // when kFailed
};

}  // namespace weft
