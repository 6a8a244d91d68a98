// SPDX-License-Identifier: Apache-2.0
// Who is connected to whom: from a listener's handle to a flow, and to the last word.
//
//     connector                                              listener's end
//       dial, hello(cookie, who I am)  ------------------->  cookie known? fabrics agree?
//       connection made               <-------------------   welcome(who I am), connection made
//       open(cookie, request)          ------------------->  waits in the listener's queue
//       done                          <-------------------   accept(): opened(request, flow)
//
// Dialing is a race from several ports (dials.cc). Between dial and hello the connector finds out
// how long a datagram may be on the way, where the options ask for it (size_search.h); the hello
// tells. Later connectors with the same key send `open` on the stream that is there. Two ends that
// dial each other at once: the hello of the lower incarnation wins; the other end drops its own
// attempt when that hello comes, and whoever is refused as "crossed" waits for it, and tries again
// if it does not come.
//
// A stream that ends is a hint to its connection, which decides for itself. The next flow that is
// wanted has it mended (mend.cc), and no request is served twice. Last word and goodbye end a
// connection in good order.
//
// Threading: under the endpoint's set-up mutex; takes the engine's lock for short. Ownership: owns
// peers, listeners, connectors, and through peers flows and registrations. Failure: of a connector,
// in words.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "multipath/endpoint/endpoint.h"
#include "multipath/endpoint/out_of_band.h"
#include "multipath/endpoint/path_probe.h"
#include "multipath/endpoint/peer.h"
#include "multipath/engine/progress_thread.h"
#include "transport/base/random.h"

namespace weft {

class PeerTable final : public OutOfBand::Handler {
 public:
  PeerTable(const EndpointOptions& options, Fabric& fabric, Progress& progress,
            OutOfBand& out_of_band);
  // Draws the incarnation.
  Status open();
  // Once the out-of-band side is open: the socket for size probes, if the options ask for them.
  void open_probe();

  Result<Listener*> listen(uint64_t context, Handle* handle);
  void close_listener(Listener* listener);
  // Null: nobody waits.
  ReceiveFlow* accept(Listener& listener);

  Result<Connector*> start_connect(uint64_t context, int32_t traffic_class, const Handle& handle);
  // Ends the connector if it is done or failed.
  Status poll(Connector* connector, SendFlow** flow);

  void close_flow(Flow* flow);
  Result<Registration*> register_memory(Flow& flow, const MemoryRange& range);
  void deregister(Registration* registration);

  // Gives peers a moment to confirm that they know what is over; those that have let such a moment
  // pass get no second one. Meanwhile `rest` is called, which may let others into this table.
  using Rest = std::function<void(Duration)>;
  void finish_context(uint64_t context, const Rest& rest);
  void finish_all(const Rest& rest);

  void on_frame(OobStream& stream, const Frame& frame, Time now) override;
  void on_end(OobStream& stream, Time now) override;
  void on_connected(OobStream& stream, Time now) override;
  void on_guest(Time now) override;
  // Attempts that are late, or due again.
  void tick(Time now);
  Time deadline() const { return next_tick_; }

  size_t connections() const { return peers_.size(); }
  void add_statistics(EndpointStatistics* out);
  static const std::string& name_of(const Flow& flow);

 private:
  using Peers = std::list<std::unique_ptr<Peer>>;

  // peers.cc: the life of a peer.
  Peer* find(const PeerKey& key);
  Peer* make_peer(const PeerKey& key, const IpAddress& address, uint16_t port);
  Status prepare(Peer& peer);  // reserves a name and a link
  void leave_table(Peer& peer);
  void end_peer(Peer& peer);
  void fail_connectors(Peer& peer, const Status& status);
  // Of one context, or of all.
  void close_flows(std::optional<uint64_t> context, const Rest& rest);
  // Peers of that context, or of all, that may yet confirm their flows' ends.
  std::vector<const Peer*> unconfirmed(std::optional<uint64_t> context);
  void finish_peer(Peer& peer);
  void destroy(Peer& peer);
  void reap(Peer& peer);
  static void count(const Peer& peer, EndpointStatistics* out);

  // dials.cc: one stream of many.
  void begin_race(Peer& peer, Time now);
  void dial_more(Peer& peer, Time now);
  void win(Peer& peer, OobStream& stream, Time now);
  void forget_dial(Peer& peer, OobStream& stream);
  void close_dials(Peer& peer);
  void on_dial_end(Peer& peer, OobStream& stream, Time now);
  void give_up_race(Peer& peer, const Status& status, Time now);

  // mend.cc: a stream in the place of one that is gone or silent.
  bool stuck(Peer& peer, const OobStream& stream, Time now);
  void expect_arrival(Peer& peer, const OobStream& stream, Time now);
  void watch_stream(Peer& peer, Time now);
  void mend(Peer& peer, Time now);
  void stop_mending(Peer& peer);
  void tend(Peer& peer, Time now);
  void drop_courier(Peer& peer);
  void ask_to_resume(Peer& peer, OobStream& stream, Time now);
  void on_resume(OobStream& stream, const Frame& frame, Time now);
  void on_resumed(Peer& peer, OobStream& stream, Time now);
  void adopt(Peer& peer, OobStream& stream, Time now);
  void on_break(Peer& peer, OobStream& stream, Time now);
  void leave_behind(Peer& peer, const Status& status, Time now);
  void greet_anew(Peer& peer, Time now);
  static bool is_dead(const Peer& peer);

  // attempts.cc: until both ends have a connection.
  static Time due(const Peer& peer);
  void try_on(Peer& peer, Time now);
  void begin_attempt(Peer& peer, Time now);
  void end_attempt(Peer& peer);
  void dial(Peer& peer, Time now);
  void introduce(Peer& peer, Time now);
  void retry_later(Peer& peer, Time now);
  void settle_attempt(Peer& peer, Connector* refused, const Status& status, Time now);
  void schedule(const Peer& peer);
  Status bring_up(Peer& peer, const wire::Introduction& other);
  wire::Introduction introduction(const Peer& peer) const;
  Status agree(const wire::Introduction& other) const;

  // sizes.cc: what the way to a peer carries.
  bool find_size(Peer& peer, Time now);
  void settle_size(Peer& peer, Time now);
  void end_search(Peer& peer);
  uint32_t segment_bytes(const Peer& peer) const;

  // requests.cc: a flow is asked for, and opened.
  void send_opens(Peer& peer, Time now);
  void ask_again(Peer& peer, size_t most);
  void on_open(Peer& peer, const Frame& frame);
  void answer(Peer& peer, uint32_t request, uint32_t flow);
  void refuse(Peer& peer, uint32_t request, wire::Refusal code, const std::string& words);
  void say(Peer& peer, std::span<const std::byte> frame);
  void on_opened(Peer& peer, const Frame& frame);

  // handshake.cc: what is said.
  void on_stranger(OobStream& stream, const Frame& frame, Time now);
  void on_hello(OobStream& stream, const wire::Hello& hello, Time now);
  void on_welcome(Peer& peer, const Frame& frame, Time now);
  void on_refused(Peer& peer, const Frame& frame, Time now);
  void on_last_word(Peer& peer, const Frame& frame, Time now);
  void on_goodbye(Peer& peer, Time now);
  void broke_protocol(Peer& peer, const char* what, Time now);
  Listener* find_listener(const wire::Cookie& cookie);

  const EndpointOptions& options_;
  Fabric& fabric_;
  Progress& progress_;
  OutOfBand& out_of_band_;
  uint64_t incarnation_ = 0;
  Random random_{0};  // reseeded in open(); for connections' seeds, nothing secret

  struct KnownSize {
    uint32_t segment = 0;
    Time until;
  };
  PathProbe probe_;
  std::map<std::string, KnownSize> known_sizes_;  // by address; at most kMaxKnownSizes
  static constexpr size_t kMaxKnownSizes = 1024;

  std::map<PeerKey, Peer*> by_key_;  // those that take new flows
  Peers peers_;                      // all
  std::list<std::unique_ptr<Listener>> listeners_;
  std::unordered_map<Connector*, std::unique_ptr<Connector>> connectors_;
  uint32_t last_request_ = 0;
  Time next_tick_ = Time::never();
  size_t dials_open_ = 0;  // of all peers
  // Of processes that let a farewell pass: since when. By incarnation.
  std::map<uint64_t, Time> silent_since_;
  EndpointStatistics retired_;  // what connections that are gone have carried
};

}  // namespace weft
