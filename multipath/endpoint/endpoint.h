// SPDX-License-Identifier: Apache-2.0
// A process's presence on one device: listen, connect, accept, register, send, receive, test. The
// API that the plugin and the tools use.
//
// One Endpoint owns one fabric, one engine with its progress thread, and one TCP socket on which
// peers find it (out of band). Flows of a *context* (an NCCL communicator) to the same remote
// context, with the same traffic class, share one Connection in both directions. The TCP stream
// over which a connection was made stays open for its life: it opens further flows, ends with the
// last word, and its breaking is a hint; it is mended when a flow is wanted.
//
// Nothing blocks: connect() and accept() are polled, the handshake advances in whoever polls them
// and in the engine's thread; closing waits for nobody. isend and irecv (send(), receive()) take no
// lock and make no system call unless the engine's thread sleeps and must be rung awake.
//
// Threading: every call may come from any thread; send(), receive() and test() of one flow from one
// thread at a time, and not while that flow is being closed. Locks: the set-up mutex, then the
// engine's.
//
// Ownership: listeners, connectors, flows and registrations belong to the endpoint, the caller
// holds plain pointers; each dies with its close_* or deregister(), and what is left of a context
// with finish_context(). Requests belong to their flow: test() that reports completion (or failure)
// ends one.
//
// Failure: Status with words that name the peer, what was tried and what was seen. A flow fails
// alone; the endpoint goes on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multipath/engine/flow.h"
#include "multipath/path/path.h"
#include "transport/base/ip_address.h"
#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/fabric.h"
#include "transport/system/config.h"

namespace weft {

class Listener;
class Connector;

// What a listener hands out and connect() takes: opaque, carried by the caller's own means. What
// comes back is checked like any bytes from outside.
inline constexpr size_t kHandleBytes = 128;
using Handle = std::array<std::byte, kHandleBytes>;

struct EndpointOptions {
  std::string device_name = "device";               // for words
  uint32_t device = 0;                              // which of the process's devices this is
  IpAddress address = IpAddress::v4(127, 0, 0, 1);  // on which peers find us (TCP, any free port)
  ProgressMode progress = ProgressMode::kAuto;
  int max_paths = 0;  // of a connection; 0: all that the fabric offers
  std::string selector = "reps";
  std::string law = "nscc";
  uint64_t window_bytes = 2 << 20;
  uint32_t burst_bytes = 64 << 10;
  // Find out which datagrams the way to a peer carries whole: fabrics of datagrams over IP, whose
  // segment size was not chosen by hand.
  bool probe_sizes = false;
  Duration timer_floor = milliseconds(2);
  // silence for which a peer is dead, and a set-up step's patience
  Duration peer_timeout = seconds(10);
};

// Totals over all connections that the endpoint has had.
struct EndpointStatistics {
  std::vector<PathCounters> paths;  // by path index
  uint64_t segments_retransmitted = 0;
  uint64_t segments_lost = 0;
  uint64_t strangers = 0;         // datagrams that named no connection of ours, or not its secret
  uint64_t malformed = 0;         // datagrams that are not what the wire format allows
  uint64_t controls_refused = 0;  // control packets that the fabric did not take
  uint64_t intruders = 0;         // out-of-band streams that presented no valid cookie
  size_t connections = 0;         // open now
};

class Endpoint {
 public:
  // Binds, listens and starts the progress thread.
  static Result<std::unique_ptr<Endpoint>> open(EndpointOptions options,
                                                std::unique_ptr<Fabric> fabric);
  // Says the last word on every connection, then joins the thread. Every pointer it gave is dead.
  virtual ~Endpoint() = default;

  // --- Set-up. `context` is any number that means one communicator in this process.

  virtual Result<Listener*> listen(uint64_t context, Handle* handle) = 0;
  // *flow stays null until a peer has connected; call again. An error is about the listener as a
  // whole.
  virtual Status accept(Listener* listener, ReceiveFlow** flow) = 0;
  // Flows that were accepted live on. Peers that are not accepted yet are refused.
  virtual void close_listener(Listener* listener) = 0;

  // Begins to connect to the listener behind `handle`; connect() polls it.
  virtual Result<Connector*> start_connect(uint64_t context, int32_t traffic_class,
                                           const Handle& handle) = 0;
  // *flow stays null until the peer has accepted; call again. Once *flow is set or an error is
  // returned the connector is gone.
  virtual Status connect(Connector* connector, SendFlow** flow) = 0;

  // The caller gets nothing more of the flow, and neither does the network: from the return on
  // nothing reads or writes memory on its behalf. Its requests are gone. Waits for nobody.
  virtual void close(SendFlow* flow) = 0;
  virtual void close(ReceiveFlow* flow) = 0;

  // Ends everything of a context that is left: listeners, connectors, half-open attempts, flows,
  // registrations; says the last word on its connections and ends them. Gives a peer that lives a
  // moment to confirm (200 ms at most, once a process that is silent); others may call meanwhile.
  virtual void finish_context(uint64_t context) = 0;

  // --- Memory, for the connection of `flow` (all flows that share it may use the registration).

  virtual Result<Registration*> register_memory(Flow* flow, const MemoryRange& range) = 0;
  // From the return on nothing touches the memory. Flows that still use it fail
  // (Failure::kDeregistered).
  virtual void deregister(Registration* registration) = 0;

  // --- Data.

  // kPosted: *request is to be tested; else *request is null. `hints`: of the traffic at this
  // moment.
  virtual Answer send(SendFlow* flow, const std::byte* data, uint64_t bytes, int32_t tag,
                      const Registration* registration, Request** request,
                      const TrafficHints& hints = {}) = 0;
  virtual Answer receive(ReceiveFlow* flow, std::span<const ReceiveBuffer> parts,
                         Request** request) = 0;
  // Drives the engine if the request is not complete. *done: the request is over and its pointer
  // dead; of a receive, `sizes` (may be null) then has one number a part, of a send one number. An
  // error means *done too. `parts` (may be null) gets how many sizes there are.
  virtual Status test(Request* request, bool* done, uint64_t* sizes, int* parts = nullptr) = 0;

  // Why a flow answered kFailed, in words that name the peer.
  virtual Status failure_of(const Flow& flow) const = 0;

  // --- Facts.

  virtual const Fabric& fabric() const = 0;
  virtual EndpointStatistics statistics() = 0;
};

}  // namespace weft
