// SPDX-License-Identifier: Apache-2.0
// The life of a peer: made, prepared, ended, finished with a last word, destroyed, counted.
#include <algorithm>

#include "multipath/endpoint/peer_table.h"
#include "transport/system/clock.h"
#include "transport/system/random.h"

namespace weft {
namespace {

constexpr Duration kFarewell = milliseconds(200);
constexpr Duration kFarewellPause = microseconds(200);
constexpr Duration kSilenceRemembered = seconds(10);

}  // namespace

Peer* PeerTable::find(const PeerKey& key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

Peer* PeerTable::make_peer(const PeerKey& key, const IpAddress& address, uint16_t port) {
  peers_.push_back(std::make_unique<Peer>());
  Peer* peer = peers_.back().get();
  peer->key = key;
  peer->address = address;
  peer->port = port;
  peer->name = address.text(port) + " (device " + std::to_string(key.remote_device) + ")";
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
  close_dials(peer);
  for (OobStream** stream : {&peer.stream, &peer.spare, &peer.courier}) {
    if (*stream) out_of_band_.close(**stream);
    *stream = nullptr;
  }
  peer.mending = false;
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

void PeerTable::finish_context(uint64_t context, const Rest& rest) {
  listeners_.remove_if([&](const auto& listener) {
    if (listener->context != context) return false;
    for (const auto& w : listener->waiting) {
      refuse(*w.peer, w.request, wire::Refusal::kNoListener, "the listener's context is over");
    }
    return true;
  });
  close_flows(context, rest);
  std::vector<Peer*> ours;
  for (const auto& peer : peers_) {
    if (peer->key.context == context) ours.push_back(peer.get());
  }
  for (Peer* peer : ours) finish_peer(*peer);
  std::erase_if(connectors_, [&](const auto& c) { return c.first->context == context; });
}

void PeerTable::finish_all(const Rest& rest) {
  listeners_.clear();
  close_flows(std::nullopt, rest);
  while (!peers_.empty()) finish_peer(*peers_.front());
  connectors_.clear();
}

std::vector<const Peer*> PeerTable::unconfirmed(std::optional<uint64_t> context) {
  std::vector<const Peer*> all;
  Progress::Exclusive engine(progress_);
  for (const auto& p : peers_) {
    const bool may_confirm = (!context || p->key.context == *context) &&
                             p->state == Peer::State::kUp && p->stream && !p->said_goodbye;
    if (!may_confirm || !p->member->connection->ends_unconfirmed()) continue;
    const auto silent = silent_since_.find(p->key.remote_incarnation);
    if (silent == silent_since_.end() || p->member->connection->last_heard() > silent->second)
      all.push_back(p.get());
  }
  return all;
}

// A stream may lie on a way that has died since, and its last word with it; datagrams take all
// ways. So peers are told by these first, until they confirm or say goodbye themselves, for no
// longer than a few time-outs. Who says goodbye may be forgotten in here.
void PeerTable::close_flows(std::optional<uint64_t> context, const Rest& rest) {
  for (const auto& peer : peers_) {
    if (context && peer->key.context != *context) continue;
    {
      Progress::Exclusive engine(progress_);
      for (const auto& flow : peer->flows) engine->close_flow(*flow);
    }
    peer->flows.clear();
  }
  const Time begin = monotonic_now();
  Time now = begin;
  for (; now - begin < kFarewell && !unconfirmed(context).empty(); now = monotonic_now()) {
    out_of_band_.serve(now);
    if (!unconfirmed(context).empty()) rest(kFarewellPause);
  }
  std::erase_if(silent_since_, [&](const auto& s) { return now - s.second > kSilenceRemembered; });
  for (const Peer* peer : unconfirmed(context)) silent_since_[peer->key.remote_incarnation] = begin;
}

// Says what must be known of each flow even if nobody ever answers again, then goodbye.
void PeerTable::finish_peer(Peer& peer) {
  if (peer.state == Peer::State::kUp && peer.stream) {
    std::vector<std::vector<std::byte>> words;
    {
      Progress::Exclusive engine(progress_);
      words = peer.member->connection->last_word();
    }
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
  end_search(peer);
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

}  // namespace weft
