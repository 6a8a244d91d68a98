// SPDX-License-Identifier: Apache-2.0
// Attempts to reach a peer: dialing, trying again, agreeing, and the connection that comes of it.
#include <algorithm>

#include "multipath/endpoint/peer_table.h"

namespace weft {
namespace {

constexpr Duration kFirstBackoff = milliseconds(5);
constexpr Duration kLongestBackoff = milliseconds(200);
constexpr int kHelloLooks = 6;  // at a stream whose hello is not answered; doubles
constexpr int kMostDoublings = 4;

std::string describe(const char* fabric, Offloads o) {
  std::string out = std::string("\"") + fabric + "\"";
  if (o.places) out += " (places)";
  if (o.reliable) out += " (reliable)";
  return out;
}

}  // namespace

// When tick() has something to do for a peer.
Time PeerTable::due(const Peer& peer) {
  if (peer.state == Peer::State::kEnded) return Time::never();
  return earlier(earlier(peer.deadline, peer.retry_at), earlier(peer.race.next(), peer.look_at));
}

void PeerTable::schedule(const Peer& peer) { next_tick_ = earlier(next_tick_, due(peer)); }

void PeerTable::tick(Time now) {
  if (next_tick_ > now) return;
  next_tick_ = Time::never();
  std::vector<Peer*> trying;
  for (const auto& peer : peers_) {
    if (due(*peer) <= now) {
      trying.push_back(peer.get());
    } else {
      schedule(*peer);
    }
  }
  for (Peer* peer : trying) {
    peer->state == Peer::State::kUp ? tend(*peer, now) : try_on(*peer, now);
  }
}

// What is due of an attempt.
void PeerTable::try_on(Peer& peer, Time now) {
  if (peer.deadline <= now) {
    std::string words =
        "no connection within " + std::to_string(options_.peer_timeout.ns / 1000000) + " ms";
    if (!peer.dials.empty()) words += "; TCP got no answer from any of many ports";
    if (!peer.last.ok()) words += "; last seen: " + peer.last.words();
    fail_connectors(peer, {Code::kRemote, words});
    destroy(peer);
  } else if (peer.race.next() <= now) {
    dial_more(peer, now);
  } else if (peer.look_at <= now) {
    // A hello that has arrived may still wait long for its answer, from a slow peer. But the answer
    // may also have met a way that has died since, and to greet again does no harm.
    const bool late = ++peer.looks > kHelloLooks << std::min(peer.greetings, kMostDoublings);
    if (stuck(peer, *peer.stream, now) || late) {
      peer.last = {Code::kRemote, "no answer to the hello came on a stream that was there"};
      peer.greetings += late;
      retry_later(peer, now);
    }
  } else if (peer.retry_at <= now) {
    peer.stream ? introduce(peer, now) : dial(peer, now);
  } else {
    schedule(peer);
  }
}

// For a peer that was just made, on behalf of its connectors.
void PeerTable::begin_attempt(Peer& peer, Time now) {
  const Status ready = prepare(peer);
  if (!ready.ok()) {
    fail_connectors(peer, ready);
    destroy(peer);
    return;
  }
  peer.deadline = now + options_.peer_timeout;
  dial(peer, now);
}

void PeerTable::dial(Peer& peer, Time now) {
  peer.retry_at = Time::never();
  if (peer.connectors.empty()) {  // nobody wants it any more
    destroy(peer);
    return;
  }
  peer.state = Peer::State::kDialing;
  begin_race(peer, now);
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
  peer.looks = 0;
  expect_arrival(peer, *peer.stream, now);
}

// Takes back whatever is under way. What was said and has not arrived must not arrive later, beside
// what is said next.
void PeerTable::end_attempt(Peer& peer) {
  close_dials(peer);
  if (peer.stream) out_of_band_.abandon(*peer.stream);
  peer.stream = nullptr;
  peer.look_at = Time::never();
  end_search(peer);
}

void PeerTable::retry_later(Peer& peer, Time now) {
  end_attempt(peer);
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
  // With timers this coarse it may cross a data centre.
  config.longest_base_rtt = options_.timer_floor / 10;
  config.peer_timeout = options_.peer_timeout;
  config.seed = random_.next();
  engine->attach(*peer.member, peer.link, config);
  end_search(peer);
  peer.remote = other.address;
  peer.state = Peer::State::kUp;
  peer.retry_at = peer.deadline = peer.look_at = Time::never();
  return {};
}

}  // namespace weft
