// SPDX-License-Identifier: Apache-2.0
// Listeners, connectors, flows and registrations: what the endpoint is asked for.
#include "multipath/endpoint/peer_table.h"

#include <algorithm>

#include "transport/system/clock.h"
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

namespace {

Result<wire::Cookie> fresh_cookie() {
  wire::Cookie cookie;
  const Status status = fill_random(cookie);
  if (!status.ok()) return status;
  return cookie;
}

}  // namespace

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
  says.probe_port = probe_.port();
  handle->fill(std::byte{0});
  wire::encode_handle(std::span(*handle).first<wire::kHandleBytes>(), says);
  listeners_.push_back(std::move(listener));
  return listeners_.back().get();
}

void PeerTable::close_listener(Listener* listener) {
  for (const Listener::Waiting& waiting : listener->waiting) {
    refuse(*waiting.peer, waiting.request, wire::Refusal::kNoListener,
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
      refuse(peer, first.request, wire::Refusal::kFull,
             "the connection is dead or has no room for another flow");
      continue;
    }
    ReceiveFlow* plain = flow.get();
    peer.flows.push_back(std::move(flow));
    answer(peer, first.request, plain->id());
    return plain;
  }
  return nullptr;
}

Result<Connector*> PeerTable::start_connect(uint64_t context, int32_t traffic_class,
                                            const Handle& handle) {
  wire::ListenHandle to;
  if (!wire::decode_handle(handle, &to)) {
    if (to.version != wire::kHandshakeVersion) {
      return Status(Code::kInvalidArgument, "connect: the handle is of version " +
                                                std::to_string(to.version) +
                                                " of the handshake, this end speaks " +
                                                std::to_string(wire::kHandshakeVersion));
    }
    return Status(Code::kInvalidArgument,
                  "connect: these bytes are not a handle that listen() made");
  }
  const PeerKey key{context, to.context, to.incarnation, to.device, traffic_class, false};
  auto owned = std::make_unique<Connector>();
  Connector* connector = owned.get();
  connector->context = context;
  connector->cookie = to.cookie;
  connector->target = to.address.text(to.port);
  const Time now = monotonic_now();
  Peer* peer = find(key);
  if (peer && peer->state == Peer::State::kUp && !peer->stream && is_dead(*peer)) {
    leave_behind(*peer, {Code::kRemote, "the connection is dead"}, now);
    peer = nullptr;
  }
  const bool fresh = peer == nullptr;
  if (fresh) peer = make_peer(key, to.address, to.port);
  if (peer->port == 0) peer->address = to.address, peer->port = to.port;
  if (peer->probe_port == 0) peer->probe_port = to.probe_port;
  connector->peer = peer;
  peer->connectors.push_back(connector);
  connectors_.emplace(connector, std::move(owned));
  if (fresh) {
    begin_attempt(*peer, now);
  } else if (peer->state == Peer::State::kUp) {
    send_opens(*peer, now);
  }
  return connector;
}

Status PeerTable::poll(Connector* connector, SendFlow** flow) {
  *flow = nullptr;
  if (connector->state == Connector::State::kDone) *flow = connector->flow;
  const Status status = connector->status;
  if (connector->state == Connector::State::kDone ||
      connector->state == Connector::State::kFailed) {
    connectors_.erase(connector);
  }
  return status;
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

const std::string& PeerTable::name_of(const Flow& flow) {
  return static_cast<const Peer*>(flow.member().user)->name;
}

}  // namespace weft
