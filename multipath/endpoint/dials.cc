// SPDX-License-Identifier: Apache-2.0
// A peer is dialed from several ports until one stream is there (dial_race.h).
//
// Whatever does not win is closed at once and has said nothing, so the other end sees strangers
// that come and go. All races of an endpoint together have a bound, below which each gets a few
// dials.
#include <algorithm>

#include "multipath/endpoint/peer_table.h"

namespace weft {
namespace {

constexpr size_t kMostOfAll = 256;  // descriptors in all races
constexpr size_t kFewest = 4;       // in each, whatever others have

}  // namespace

void PeerTable::begin_race(Peer& peer, Time now) {
  close_dials(peer);
  peer.race.begin(now);
  dial_more(peer, now);
}

void PeerTable::dial_more(Peer& peer, Time now) {
  const size_t others = dials_open_ - peer.dials.size();
  const size_t most =
      std::clamp(kMostOfAll - std::min(others, kMostOfAll), kFewest, DialRace::kMostOpen);
  for (size_t left = std::min(peer.race.due(now), most); left > 0; --left) {
    if (peer.dials.size() >= most) {
      // The first stays: see dial_race.h.
      OobStream* oldest = peer.dials[1];
      forget_dial(peer, *oldest);
      out_of_band_.close(*oldest);
    }
    Result<OobStream*> stream = out_of_band_.dial(peer.address, peer.port);
    if (!stream.ok()) {
      if (!peer.dials.empty()) break;  // out of descriptors or ports: these have to do
      give_up_race(peer, stream.status(), now);
      return;
    }
    (*stream)->peer = &peer;
    peer.dials.push_back(*stream);
    ++dials_open_;
    if (!(*stream)->connecting()) {
      win(peer, **stream, now);
      return;
    }
  }
  schedule(peer);
}

void PeerTable::forget_dial(Peer& peer, OobStream& stream) {
  dials_open_ -= std::erase(peer.dials, &stream);
}

void PeerTable::close_dials(Peer& peer) {
  peer.race.end();
  dials_open_ -= peer.dials.size();
  for (OobStream* stream : peer.dials) out_of_band_.close(*stream);
  peer.dials.clear();
}

void PeerTable::win(Peer& peer, OobStream& stream, Time now) {
  forget_dial(peer, stream);
  close_dials(peer);
  if (peer.state == Peer::State::kUp) {
    ask_to_resume(peer, stream, now);
  } else {
    peer.stream = &stream;
    introduce(peer, now);
  }
}

void PeerTable::on_connected(OobStream& stream, Time now) {
  Peer* peer = stream.peer;
  if (peer && std::find(peer->dials.begin(), peer->dials.end(), &stream) != peer->dials.end()) {
    win(*peer, stream, now);
  }
}

// One dial has failed. Refused, the peer is gone, whichever way that was said. Anything else may be
// the way's fault, and the race goes on.
void PeerTable::on_dial_end(Peer& peer, OobStream& stream, Time now) {
  forget_dial(peer, stream);
  stream.peer = nullptr;
  peer.last = stream.end();
  if (stream.refused()) give_up_race(peer, stream.end(), now);
}

void PeerTable::give_up_race(Peer& peer, const Status& status, Time now) {
  if (peer.state == Peer::State::kUp) {
    leave_behind(peer, status, now);
  } else {
    fail_connectors(peer, status);
    destroy(peer);
  }
}

}  // namespace weft
