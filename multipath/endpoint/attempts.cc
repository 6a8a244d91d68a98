// SPDX-License-Identifier: Apache-2.0
// Attempts to reach a peer: dialing, trying again, agreeing, and the connection that comes of it.
#include <algorithm>

#include "multipath/endpoint/peer_table.h"

namespace weft {
namespace {

constexpr Duration kFirstBackoff = milliseconds(5);
constexpr Duration kLongestBackoff = milliseconds(200);
// TCP repeats its first packet from the same port, so always on the same way through the network.
// A new stream has another port: with one way in four dead each way, seven of them in ten seconds
// leave one attempt in three hundred without any.
constexpr Duration kFirstPatience = milliseconds(300);

std::string describe(const char* fabric, Offloads o) {
  std::string out = std::string("\"") + fabric + "\"";
  if (o.places) out += " (places)";
  if (o.reliable) out += " (reliable)";
  return out;
}

}  // namespace

void PeerTable::schedule(const Peer& peer) {
  if (peer.state == Peer::State::kDialing || peer.state == Peer::State::kWaiting) {
    next_tick_ = earlier(next_tick_, earlier(peer.deadline, peer.retry_at));
  }
}

void PeerTable::tick(Time now) {
  if (next_tick_ > now) return;
  next_tick_ = Time::never();
  std::vector<Peer*> trying;
  for (const auto& peer : peers_) {
    if (peer->state == Peer::State::kDialing || peer->state == Peer::State::kWaiting) {
      trying.push_back(peer.get());
    }
  }
  for (Peer* peer : trying) {
    if (peer->deadline <= now) {
      std::string words =
          "no connection within " + std::to_string(options_.peer_timeout.ns / 1000000) + " ms";
      if (!peer->last.ok()) words += "; last seen: " + peer->last.words();
      fail_connectors(*peer, {Code::kRemote, words});
      destroy(*peer);
    } else if (peer->retry_at <= now) {
      if (peer->stream && peer->stream->connecting()) {
        peer->last = {Code::kRemote, "TCP got no answer; another port may take another way"};
        retry_later(*peer, now);
      } else {
        peer->stream ? introduce(*peer, now) : dial(*peer, now);
      }
    } else {
      schedule(*peer);
    }
  }
}

void PeerTable::dial(Peer& peer, Time now) {
  peer.retry_at = Time::never();
  if (peer.connectors.empty()) {  // nobody wants it any more
    destroy(peer);
    return;
  }
  Result<OobStream*> stream = out_of_band_.dial(peer.address, peer.port);
  if (!stream.ok()) {
    fail_connectors(peer, stream.status());
    destroy(peer);
    return;
  }
  peer.state = Peer::State::kDialing;
  peer.stream = *stream;
  peer.stream->peer = &peer;
  if (peer.stream->connecting()) {
    peer.patience = peer.patience.ns == 0 ? kFirstPatience : peer.patience * 3 / 2;
    peer.retry_at = now + peer.patience;
  } else {
    introduce(peer, now);
  }
  schedule(peer);
}

// Says hello on a stream that is there, once it is known how long packets may be.
void PeerTable::introduce(Peer& peer, Time now) {
  peer.retry_at = Time::never();
  if (peer.connectors.empty()) {
    destroy(peer);
    return;
  }
  if (!find_size(peer, now)) return;
  wire::Hello hello;
  hello.cookie = peer.connectors.front()->cookie;
  hello.to_incarnation = peer.key.remote_incarnation;
  hello.to_context = peer.key.remote_context;
  hello.to_device = peer.key.remote_device;
  hello.self = introduction(peer);
  std::vector<std::byte> frame;
  wire::append_hello(&frame, hello);
  out_of_band_.send(*peer.stream, frame);
  schedule(peer);
}

void PeerTable::retry_later(Peer& peer, Time now) {
  if (peer.stream) out_of_band_.close(*peer.stream);
  peer.stream = nullptr;
  peer.search.reset();
  peer.state = Peer::State::kWaiting;
  peer.backoff = peer.backoff.ns == 0 ? kFirstBackoff : std::min(peer.backoff * 2, kLongestBackoff);
  peer.retry_at = now + peer.backoff;
  schedule(peer);
}

// Our attempt was answered with no, for the sake of the connector whose cookie it carried. Others
// that wait for the same peer try with their own.
void PeerTable::settle_attempt(Peer& peer, Connector* refused, const Status& status, Time now) {
  std::vector<Connector*> others = peer.connectors;
  std::erase(others, refused);
  peer.connectors = {refused};
  fail_connectors(peer, status);
  peer.connectors = others;
  if (others.empty()) {
    destroy(peer);
  } else {
    retry_later(peer, now);
  }
}

wire::Introduction PeerTable::introduction(const Peer& peer) const {
  wire::Introduction self;
  self.incarnation = incarnation_;
  self.context = peer.key.context;
  self.device = options_.device;
  self.traffic_class = peer.key.traffic_class;
  self.address = peer.member->own;
  self.segment_bytes = segment_bytes(peer);
  self.paths = static_cast<uint16_t>(std::clamp(fabric_.max_paths(), 1, kMaxPaths));
  self.offloads = fabric_.offloads();
  self.fabric = fabric_.name();
  self.link_address = peer.link_address;
  return self;
}

Status PeerTable::agree(const wire::Introduction& other) const {
  const Offloads ours = fabric_.offloads();
  const bool same = other.fabric == fabric_.name() && other.offloads.places == ours.places &&
                    other.offloads.reliable == ours.reliable &&
                    other.offloads.ordered_path == ours.ordered_path;
  if (same) return {};
  return {Code::kRemote, "the two ends use different fabrics: " + describe(fabric_.name(), ours) +
                             " and " + describe(other.fabric.c_str(), other.offloads) +
                             " (set WEFT_FABRIC alike on both)"};
}

Status PeerTable::bring_up(Peer& peer, const wire::Introduction& other) {
  Progress::Exclusive engine(progress_);
  const Status connected = fabric_.connect_link(peer.link, other.link_address);
  if (!connected.ok()) return connected;
  int paths = std::min(fabric_.paths(peer.link), kMaxPaths);
  if (options_.max_paths > 0) paths = std::min(paths, options_.max_paths);
  if (paths < 1) return {Code::kInternal, "the fabric offers no path to this peer"};
  ConnectionConfig config;
  config.offloads = fabric_.offloads();
  config.peer = other.address;
  config.paths = paths;
  config.segment_bytes = std::min(segment_bytes(peer), other.segment_bytes);
  config.peer_segment_bytes = config.segment_bytes;
  config.burst_bytes = std::min(options_.burst_bytes, fabric_.burst_bytes(config.segment_bytes));
  config.window_bytes = options_.window_bytes;
  config.law = options_.law;
  config.selector = options_.selector;
  config.port_bytes_per_second = fabric_.speed_mbps() * (1e6 / 8);
  config.timer_floor = options_.timer_floor;
  config.peer_timeout = options_.peer_timeout;
  config.seed = random_.next();
  engine->attach(*peer.member, peer.link, config);
  peer.search.reset();
  peer.state = Peer::State::kUp;
  peer.retry_at = peer.deadline = Time::never();
  return {};
}

}  // namespace weft
