// SPDX-License-Identifier: Apache-2.0
// The life of listeners, connectors, peers, flows and registrations. What is said on streams: handshake.cc.
#include "multipath/endpoint/peer_table.h"

#include <algorithm>
#include <cstring>

#include "transport/system/log.h"
#include "transport/system/random.h"

namespace weft {

PeerTable::PeerTable(const EndpointOptions& options, Fabric& fabric, Progress& progress,
                     OutOfBand& out_of_band)
    : options_(options), fabric_(fabric), progress_(progress), out_of_band_(out_of_band) {}

Status PeerTable::open() {
  Result<uint64_t> incarnation = random_u64();
  if (!incarnation.ok()) return incarnation.status();
  Result<uint64_t> seed = random_u64();
  if (!seed.ok()) return seed.status();
  incarnation_ = *incarnation;
  random_ = Random(*seed);
  return {};
}

Result<wire::Cookie> PeerTable::fresh_cookie() {
  wire::Cookie cookie;
  const Status status = fill_random(cookie);
  if (!status.ok()) return status;
  return cookie;
}

Result<Listener*> PeerTable::listen(uint64_t context, Handle* handle) {
  Result<wire::Cookie> cookie = fresh_cookie();
  if (!cookie.ok()) return cookie.status();
  auto listener = std::make_unique<Listener>();
  listener->context = context;
  listener->cookie = *cookie;
  wire::ListenHandle says;
  says.address = options_.address;
  says.port = out_of_band_.port();
  says.incarnation = incarnation_;
  says.context = context;
  says.device = options_.device;
  says.cookie = *cookie;
  handle->fill(std::byte{0});
  wire::encode_handle(std::span(*handle).first<wire::kHandleBytes>(), says);
  listeners_.push_back(std::move(listener));
  return listeners_.back().get();
}

void PeerTable::close_listener(Listener* listener) {
  for (const Listener::Waiting& waiting : listener->waiting) {
    refuse(*waiting.peer->stream, waiting.request, wire::Refusal::kNoListener,
           "the listener was closed before it accepted");
  }
  listeners_.remove_if([&](const auto& l) { return l.get() == listener; });
}

ReceiveFlow* PeerTable::accept(Listener& listener) {
  while (!listener.waiting.empty()) {
    const Listener::Waiting first = listener.waiting.front();
    listener.waiting.pop_front();
    Peer& peer = *first.peer;
    std::unique_ptr<ReceiveFlow> flow;
    {
      Progress::Exclusive engine(progress_);
      flow = engine->open_receive_flow(*peer.member);
    }
    if (!flow) {
      refuse(*peer.stream, first.request, wire::Refusal::kFull,
             "the connection is dead or has no room for another flow");
      continue;
    }
    ReceiveFlow* plain = flow.get();
    peer.flows.push_back(std::move(flow));
    std::vector<std::byte> frame;
    wire::append_opened(&frame, {first.request, plain->id()});
    out_of_band_.send(*peer.stream, frame);
    return plain;
  }
  return nullptr;
}

Result<Connector*> PeerTable::start_connect(uint64_t context, int32_t traffic_class,
                                            const Handle& handle) {
  wire::ListenHandle to;
  if (!wire::decode_handle(handle, &to)) {
    if (to.version != wire::kHandshakeVersion) {
      return Status(Code::kInvalidArgument,
                    "connect: the handle is of version " + std::to_string(to.version) +
                        " of the handshake, this end speaks " + std::to_string(wire::kHandshakeVersion));
    }
    return Status(Code::kInvalidArgument, "connect: these bytes are not a handle that listen() made");
  }
  const PeerKey key{context, to.context, to.incarnation, to.device, traffic_class, false};
  auto owned = std::make_unique<Connector>();
  Connector* connector = owned.get();
  connector->context = context;
  connector->cookie = to.cookie;
  connector->target = weft::name_of(to.address, to.port);
  Peer* peer = find(key);
  const bool fresh = peer == nullptr;
  if (fresh) {
    peer = make_peer(key, to.address, to.port);
    const Status ready = prepare(*peer);
    if (!ready.ok()) {
      destroy(*peer);
      return ready;
    }
  }
  connector->peer = peer;
  peer->connectors.push_back(connector);
  connectors_.emplace(connector, std::move(owned));
  if (fresh) {
    peer->deadline = monotonic_now() + options_.peer_timeout;
    dial(*peer);
  } else if (peer->state == Peer::State::kUp) {
    send_open(*peer, *connector);
  }
  return connector;
}

Status PeerTable::poll(Connector* connector, SendFlow** flow) {
  *flow = nullptr;
  if (connector->state == Connector::State::kDone) *flow = connector->flow;
  const Status status = connector->status;
  if (connector->state == Connector::State::kDone || connector->state == Connector::State::kFailed) {
    connectors_.erase(connector);
  }
  return status;
}

Peer* PeerTable::find(const PeerKey& key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

Peer* PeerTable::make_peer(const PeerKey& key, const Ipv4& address, uint16_t port) {
  peers_.push_back(std::make_unique<Peer>());
  Peer* peer = peers_.back().get();
  peer->key = key;
  peer->address = address;
  peer->port = port;
  peer->name = weft::name_of(address, port) + " (device " + std::to_string(key.remote_device) + ")";
  by_key_[key] = peer;
  return peer;
}

Status PeerTable::prepare(Peer& peer) {
  Result<uint64_t> token = random_u64();
  if (!token.ok()) return token.status();
  Progress::Exclusive engine(progress_);
  peer.member = engine->reserve(*token);
  if (!peer.member) return {Code::kNoResource, "no room for another connection on this device"};
  peer.member->user = &peer;
  Result<LinkId> link = fabric_.create_link(&peer.link_address);
  if (!link.ok()) return link.status();
  peer.link = *link;
  peer.has_link = true;
  return {};
}

void PeerTable::leave_table(Peer& peer) {
  const auto found = by_key_.find(peer.key);
  if (found != by_key_.end() && found->second == &peer) by_key_.erase(found);
}

// The stream is over: nothing new begins with this peer.
void PeerTable::end_peer(Peer& peer) {
  leave_table(peer);
  if (peer.stream) out_of_band_.close(*peer.stream);
  peer.stream = nullptr;
  peer.state = Peer::State::kEnded;
  for (const auto& listener : listeners_) {
    std::erase_if(listener->waiting, [&](const auto& w) { return w.peer == &peer; });
  }
}

void PeerTable::fail_connectors(Peer& peer, const Status& status) {
  for (Connector* connector : peer.connectors) {
    connector->state = Connector::State::kFailed;
    connector->peer = nullptr;
    connector->status = {status.code(), "connect to " + connector->target + ": " + status.words()};
  }
  peer.connectors.clear();
}

void PeerTable::close_flow(Flow* flow) {
  Peer& peer = *static_cast<Peer*>(flow->member().user);
  {
    Progress::Exclusive engine(progress_);
    engine->close_flow(*flow);
  }
  std::erase_if(peer.flows, [&](const auto& f) { return f.get() == flow; });
  reap(peer);
}

Result<Registration*> PeerTable::register_memory(Flow& flow, const MemoryRange& range) {
  Peer& peer = *static_cast<Peer*>(flow.member().user);
  auto registration = std::make_unique<Registration>();
  {
    Progress::Exclusive engine(progress_);
    const Status status = engine->register_memory(flow.member(), range, registration.get());
    if (!status.ok()) return Status(status.code(), "peer " + peer.name + ": " + status.words());
  }
  peer.registrations.push_back(std::move(registration));
  return peer.registrations.back().get();
}

void PeerTable::deregister(Registration* registration) {
  Peer& peer = *static_cast<Peer*>(registration->member->user);
  {
    Progress::Exclusive engine(progress_);
    engine->deregister_memory(*registration);
  }
  std::erase_if(peer.registrations, [&](const auto& r) { return r.get() == registration; });
  reap(peer);
}

void PeerTable::finish_context(uint64_t context) {
  listeners_.remove_if([&](const auto& listener) {
    if (listener->context != context) return false;
    for (const auto& w : listener->waiting) {
      refuse(*w.peer->stream, w.request, wire::Refusal::kNoListener, "the listener's context is over");
    }
    return true;
  });
  std::vector<Peer*> ours;
  for (const auto& peer : peers_) {
    if (peer->key.context == context) ours.push_back(peer.get());
  }
  for (Peer* peer : ours) finish_peer(*peer);
  std::erase_if(connectors_, [&](const auto& c) { return c.first->context == context; });
}

void PeerTable::finish_all() {
  listeners_.clear();
  while (!peers_.empty()) finish_peer(*peers_.front());
  connectors_.clear();
}

// Says what must be known of each flow even if nobody ever answers again, then goodbye.
void PeerTable::finish_peer(Peer& peer) {
  if (peer.state == Peer::State::kUp && peer.stream) {
    std::vector<std::vector<std::byte>> words;
    {
      Progress::Exclusive engine(progress_);
      for (const auto& flow : peer.flows) engine->close_flow(*flow);
      words = peer.member->connection->last_word();
    }
    peer.flows.clear();
    bool room = true;
    for (const auto& statements : words) {
      std::vector<std::byte> frame;
      if (statements.size() > wire::kMaxFrameBody) continue;
      wire::append_last_word(&frame, statements);
      room = room && peer.stream->send(frame);
    }
    std::vector<std::byte> goodbye;
    if (room) wire::append_goodbye(&goodbye);
    out_of_band_.close(*peer.stream, goodbye);
    peer.stream = nullptr;
  }
  destroy(peer);
}

void PeerTable::destroy(Peer& peer) {
  fail_connectors(peer, {Code::kRemote, "the connection is over"});
  end_peer(peer);
  if (peer.member) {
    Progress::Exclusive engine(progress_);
    for (const auto& flow : peer.flows) engine->close_flow(*flow);
    for (const auto& registration : peer.registrations) engine->deregister_memory(*registration);
    count(peer, &retired_);
    engine->detach(*peer.member);
    if (peer.has_link) fabric_.close_link(peer.link);
  }
  peers_.remove_if([&](const auto& p) { return p.get() == &peer; });
}

// A peer that has said goodbye, and of whom nobody here holds anything, is forgotten at once.
void PeerTable::reap(Peer& peer) {
  if (peer.state != Peer::State::kEnded || !peer.said_goodbye) return;
  if (peer.flows.empty() && peer.registrations.empty() && peer.connectors.empty()) destroy(peer);
}

void PeerTable::count(const Peer& peer, EndpointStatistics* out) {
  if (!peer.member || !peer.member->connection) return;
  const Connection& connection = *peer.member->connection;
  for (const Path& path : connection.paths()) {
    if (out->paths.size() <= path.index) out->paths.resize(path.index + size_t{1});
    PathCounters& sum = out->paths[path.index];
    sum.bytes += path.counters.bytes;
    sum.packets += path.counters.packets;
    sum.retransmitted += path.counters.retransmitted;
    sum.probes += path.counters.probes;
  }
  out->segments_retransmitted += connection.segments_retransmitted();
  out->segments_lost += connection.segments_lost();
}

void PeerTable::add_statistics(EndpointStatistics* out) {
  *out = retired_;
  Progress::Exclusive engine(progress_);
  for (const auto& peer : peers_) count(*peer, out);
  out->strangers = engine->counters().strangers;
  out->malformed = engine->counters().malformed;
  out->controls_refused = engine->counters().controls_refused;
  out->intruders = out_of_band_.intruders();
  out->connections = peers_.size();
}

const std::string& PeerTable::name_of(const Flow& flow) {
  return static_cast<const Peer*>(flow.member().user)->name;
}

}  // namespace weft
