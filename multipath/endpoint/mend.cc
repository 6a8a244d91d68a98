// SPDX-License-Identifier: Apache-2.0
// The stream of a connection that is up breaks, or its way dies without a word: it is mended.
//
//     who wants a flow                                 the other end
//       open(cookie, request)        --------x
//       not acknowledged: dial from other ports
//       resume(connection, token)    --------------->  that connection? this is its stream now
//                                    <---------------  resumed
//       open(cookie, request)        --------------->  served already? the same answer again
//
// While anybody here waits for a flow, the oldest request is asked again every kDoubt, and what was
// said must be acknowledged by then (by the other kernel: its process may be as slow as it likes).
// This also finds a way that is dead only back, on which an answer got lost. The old stream is
// still listened to until the next one comes, so two ends that mend at once may each use the stream
// of the other: there is nothing to settle between them. A connection's token shows that the
// resumer is its other end, the same incarnation; with the wrong one it is a stranger. A peer whose
// streams end before they are resumed knows the connection no more, and is greeted anew.
//
// Bounded by the peer time-out, after which those who wait fail in words.
#include <algorithm>

#include "multipath/endpoint/peer_table.h"
#include "transport/system/log.h"

namespace weft {
namespace {

constexpr Duration kDoubt = milliseconds(250);
constexpr int kLooks = 8;    // at a stream that asked to resume, before another is tried
constexpr int kUnknown = 3;  // streams that ended instead, before the peer is greeted anew
constexpr Duration kPause = milliseconds(20);

}  // namespace

// Whether bytes that were said before the last look have still not arrived; looks again later.
bool PeerTable::stuck(Peer& peer, const OobStream& stream, Time now) {
  const uint64_t acknowledged = stream.acknowledged();
  const bool stuck = acknowledged < peer.written && acknowledged == peer.acknowledged;
  expect_arrival(peer, stream, now);
  return stuck;
}

void PeerTable::expect_arrival(Peer& peer, const OobStream& stream, Time now) {
  peer.written = stream.written();
  peer.acknowledged = stream.acknowledged();
  peer.look_at = now + kDoubt;
  schedule(peer);
}

// A flow was asked for: from now on the stream is looked after.
void PeerTable::watch_stream(Peer& peer, Time now) {
  if (peer.mending || peer.look_at != Time::never()) return;
  if (peer.stream) {
    expect_arrival(peer, *peer.stream, now);
  } else {
    mend(peer, now);
  }
}

void PeerTable::mend(Peer& peer, Time now) {
  if (peer.mending || peer.port == 0) return;
  peer.mending = true;
  peer.looks = peer.unknown = 0;
  peer.deadline = now + options_.peer_timeout;
  peer.look_at = Time::never();
  log_info("peer {}: its out-of-band stream is silent or gone, and dialed again", peer.name);
  begin_race(peer, now);
}

void PeerTable::stop_mending(Peer& peer) {
  peer.mending = false;
  peer.deadline = peer.look_at = Time::never();
  close_dials(peer);
}

// What is due of a peer that is up.
void PeerTable::tend(Peer& peer, Time now) {
  if (peer.connectors.empty()) {
    stop_mending(peer);
  } else if (!peer.mending) {
    if (peer.look_at > now) return schedule(peer);
    if (!peer.stream || stuck(peer, *peer.stream, now)) {
      mend(peer, now);
    } else if (peer.stream->acknowledged() == peer.stream->written()) {
      ask_again(peer, 1);
    }
  } else if (peer.deadline <= now) {
    std::string words = "no way to speak to it was found within " +
                        std::to_string(options_.peer_timeout.ns / 1000000) + " ms";
    if (!peer.last.ok()) words += "; last seen: " + peer.last.words();
    drop_courier(peer);
    stop_mending(peer);
    fail_connectors(peer, {Code::kRemote, words});
  } else if (peer.race.next() <= now) {
    dial_more(peer, now);
  } else if (peer.look_at <= now) {
    if (peer.courier && !stuck(peer, *peer.courier, now) && ++peer.looks < kLooks) return;
    drop_courier(peer);
    peer.looks = 0;
    peer.look_at = Time::never();
    begin_race(peer, now);
  } else {
    schedule(peer);
  }
}

void PeerTable::drop_courier(Peer& peer) {
  if (peer.courier) out_of_band_.abandon(*peer.courier);
  peer.courier = nullptr;
}

void PeerTable::ask_to_resume(Peer& peer, OobStream& stream, Time now) {
  drop_courier(peer);
  peer.courier = &stream;
  std::vector<std::byte> frame;
  wire::append_resume(&frame, peer.remote);
  out_of_band_.send(stream, frame);
  expect_arrival(peer, stream, now);
}

// The stranger that says so is the other end of one of our connections, if it knows its name.
void PeerTable::on_resume(OobStream& stream, const Frame& frame, Time now) {
  wire::Address named;
  const auto of =
      frame.version == wire::kHandshakeVersion && wire::decode_resume(frame.body, &named)
          ? std::find_if(peers_.begin(), peers_.end(),
                         [&](const auto& p) {
                           return p->state == Peer::State::kUp && p->member->own == named;
                         })
          : peers_.end();
  if (of == peers_.end() || is_dead(**of)) {
    out_of_band_.drop(stream);
    return;
  }
  out_of_band_.mark_known(stream);
  std::vector<std::byte> answer;
  wire::append_resumed(&answer);
  out_of_band_.send(stream, answer);
  adopt(**of, stream, now);
}

void PeerTable::on_resumed(Peer& peer, OobStream& stream, Time now) {
  if (&stream != peer.courier) return;
  peer.courier = nullptr;
  adopt(peer, stream, now);
}

// `stream` is the one to speak on. Whatever was asked on another is asked again.
void PeerTable::adopt(Peer& peer, OobStream& stream, Time now) {
  stop_mending(peer);
  if (peer.spare) out_of_band_.close(*peer.spare);
  peer.spare = peer.stream;
  peer.stream = &stream;
  stream.peer = &peer;
  ask_again(peer, peer.connectors.size());
  send_opens(peer, now);
  if (!peer.connectors.empty()) watch_stream(peer, now);
}

// A stream of a peer that is up is over.
void PeerTable::on_break(Peer& peer, OobStream& stream, Time now) {
  if (&stream == peer.courier) {
    peer.courier = nullptr;
    peer.last = stream.end();
    if (!peer.mending) return;
    if (++peer.unknown >= kUnknown) return greet_anew(peer, now);
    peer.look_at = now + kPause;
    schedule(peer);
    return;
  }
  if (&stream == peer.spare) {
    peer.spare = nullptr;
    return;
  }
  peer.stream = std::exchange(peer.spare, nullptr);
  if (peer.stream) {
    if (!peer.connectors.empty()) expect_arrival(peer, *peer.stream, now);
    return;
  }
  log_info("peer {}: {}; its connection goes on if it can", peer.name, stream.end().words());
  Progress::Exclusive(progress_)->handle_peer_hint(*peer.member, now);
  for (const auto& listener : listeners_) {  // who lives will ask again
    std::erase_if(listener->waiting, [&](const auto& w) { return w.peer == &peer; });
  }
  if (!peer.connectors.empty()) mend(peer, now);
}

// Nobody is there any more: the peer takes no new flows; what there are decide for themselves.
void PeerTable::leave_behind(Peer& peer, const Status& status, Time now) {
  Progress::Exclusive(progress_)->handle_peer_hint(*peer.member, now);
  fail_connectors(peer, status);
  end_peer(peer);
}

// The peer lives, and knows our connection no more. Whoever waits for a flow gets a new one.
void PeerTable::greet_anew(Peer& peer, Time now) {
  std::vector<Connector*> waiting = std::move(peer.connectors);
  peer.connectors.clear();
  const PeerKey key = peer.key;
  const IpAddress address = peer.address;
  const uint16_t port = peer.port, probe_port = peer.probe_port;
  leave_behind(peer, {}, now);
  Peer* fresh = make_peer(key, address, port);
  fresh->probe_port = probe_port;
  fresh->connectors = std::move(waiting);
  for (Connector* connector : fresh->connectors) {
    connector->state = Connector::State::kWaiting;
    connector->peer = fresh;
  }
  begin_attempt(*fresh, now);
}

// Its connection has failed, as far as anybody has noticed.
bool PeerTable::is_dead(const Peer& peer) {
  return std::any_of(peer.flows.begin(), peer.flows.end(), [](const auto& flow) {
    const Failure why = flow->failure();
    return why == Failure::kPeerSilent || why == Failure::kPeerBroke;
  });
}

}  // namespace weft
