// SPDX-License-Identifier: Apache-2.0
// What is said on the out-of-band streams, and what follows from it: hellos, crossing, ends.
#include <algorithm>
#include <cstring>

#include "multipath/endpoint/peer_table.h"
#include "transport/system/log.h"

namespace weft {

Listener* PeerTable::find_listener(const wire::Cookie& cookie) {
  for (const auto& listener : listeners_) {
    if (listener->cookie == cookie) return listener.get();
  }
  return nullptr;
}

// --- Frames.

void PeerTable::on_frame(OobStream& stream, const Frame& frame, Time now) {
  const auto type = static_cast<wire::FrameType>(frame.type);
  if (!stream.peer) {
    on_stranger(stream, frame, now);
    return;
  }
  Peer& peer = *stream.peer;
  const bool dialing = peer.state == Peer::State::kDialing;
  // A refusal reads the same in every version, so that one end can tell the other what is wrong.
  if (frame.version != wire::kHandshakeVersion && type != wire::FrameType::kRefused) {
    broke_protocol(peer, "a frame of another version", now);
  } else if (type == wire::FrameType::kRefused) {
    on_refused(peer, frame, now);
  } else if (dialing && type == wire::FrameType::kWelcome) {
    on_welcome(peer, frame, now);
  } else if (dialing) {
    broke_protocol(peer, "a frame before its welcome", now);
  } else if (type == wire::FrameType::kResumed) {
    on_resumed(peer, stream, now);
  } else if (type == wire::FrameType::kOpen) {
    on_open(peer, frame);
  } else if (type == wire::FrameType::kOpened) {
    on_opened(peer, frame);
  } else if (type == wire::FrameType::kLastWord) {
    on_last_word(peer, frame, now);
  } else if (type == wire::FrameType::kGoodbye) {
    on_goodbye(peer, now);
  }  // what else there may be one day is ignored
}

// Gets an answer only with the cookie of one of our listeners, or the token of a connection.
void PeerTable::on_stranger(OobStream& stream, const Frame& frame, Time now) {
  wire::Cookie cookie;
  Listener* listener = nullptr;
  if (static_cast<wire::FrameType>(frame.type) == wire::FrameType::kResume) {
    on_resume(stream, frame, now);
    return;
  }
  if (static_cast<wire::FrameType>(frame.type) == wire::FrameType::kHello &&
      wire::decode_hello_cookie(frame.body, &cookie)) {
    listener = find_listener(cookie);
  }
  if (!listener) {
    out_of_band_.drop(stream);
    return;
  }
  out_of_band_.mark_known(stream);
  wire::Hello hello;
  const auto refuse_hello = [&](wire::Refusal code, const std::string& words) {
    log_warn("refused {}, which wanted to connect: {}", stream.remote(), words);
    std::vector<std::byte> answer;
    wire::append_refused(&answer, wire::kTheHello, code, words);
    out_of_band_.close(stream, answer);
  };
  if (frame.version != wire::kHandshakeVersion) {
    refuse_hello(wire::Refusal::kSpeech, "the listening end speaks version " +
                                             std::to_string(wire::kHandshakeVersion) +
                                             " of the handshake, the connecting end version " +
                                             std::to_string(frame.version));
  } else if (!wire::decode_hello(frame.body, &hello) || hello.to_context != listener->context ||
             hello.to_incarnation != incarnation_) {
    refuse_hello(wire::Refusal::kFailed, "the hello makes no sense");
  } else if (const Status same = agree(hello.self); !same.ok()) {
    refuse_hello(wire::Refusal::kFabric, same.words());
  } else {
    on_hello(stream, hello, now);
  }
}

void PeerTable::on_hello(OobStream& stream, const wire::Hello& hello, Time now) {
  const wire::Introduction& other = hello.self;
  const PeerKey key{hello.to_context, other.context,       other.incarnation,
                    other.device,     other.traffic_class, other.incarnation == incarnation_};
  const auto answer_and_close = [&](wire::Refusal code, const std::string& words) {
    std::vector<std::byte> answer;
    wire::append_refused(&answer, wire::kTheHello, code, words);
    out_of_band_.close(stream, answer);
  };
  Peer* peer = find(key);
  const bool up = peer && peer->state == Peer::State::kUp;
  const bool trying = peer && peer->state == Peer::State::kDialing;
  // Whom it has answered once does not cross it: that one tries again, for the answer got lost.
  const bool crossing = trying || (up && !peer->by_hello);
  if (crossing && incarnation_ < other.incarnation) {
    answer_and_close(wire::Refusal::kCrossed, "both ends began at once; the other attempt goes on");
    return;
  }
  if (up) {
    // It has begun anew, so it has ended what there was.
    Progress::Exclusive(progress_)->handle_peer_gone(*peer->member, now);
    peer->said_goodbye = true;
    fail_connectors(*peer, {Code::kRemote, "the peer began anew"});
    end_peer(*peer);
    reap(*peer);
    peer = nullptr;
  } else if (peer) {
    end_attempt(*peer);  // ours gives way
  }
  Status status;
  if (!peer) {
    peer = make_peer(key, IpAddress{}, 0);
    peer->name = stream.remote() + " (device " + std::to_string(key.remote_device) + ")";
    status = prepare(*peer);
  }
  if (status.ok()) status = bring_up(*peer, other);
  if (!status.ok()) {
    log_warn("cannot accept {}: {}", peer->name, status.words());
    fail_connectors(*peer, status);
    destroy(*peer);
    answer_and_close(wire::Refusal::kFailed, status.words());
    return;
  }
  peer->by_hello = true;
  peer->stream = &stream;
  stream.peer = peer;
  std::vector<std::byte> frame;
  wire::append_welcome(&frame, introduction(*peer));
  out_of_band_.send(stream, frame);
  send_opens(*peer, now);
}

void PeerTable::on_welcome(Peer& peer, const Frame& frame, Time now) {
  wire::Introduction other;
  if (!wire::decode_welcome(frame.body, &other) ||
      other.incarnation != peer.key.remote_incarnation) {
    broke_protocol(peer, "a welcome that makes no sense", now);
    return;
  }
  Status status = agree(other);
  if (status.ok()) status = bring_up(peer, other);
  if (status.ok()) {
    send_opens(peer, now);
    return;
  }
  fail_connectors(peer, status);
  destroy(peer);
}

void PeerTable::on_refused(Peer& peer, const Frame& frame, Time now) {
  wire::Refused refused;
  if (!wire::decode_refused(frame.body, &refused)) {
    broke_protocol(peer, "a refusal that makes no sense", now);
    return;
  }
  const Status status(Code::kRemote, "refused by the peer: " + refused.words);
  if (refused.request != wire::kTheHello) {
    for (Connector* connector : peer.connectors) {
      if (connector->state != Connector::State::kOpening || connector->request != refused.request)
        continue;
      std::erase(peer.connectors, connector);
      connector->peer = nullptr;
      connector->state = Connector::State::kFailed;
      connector->status = {status.code(),
                           "connect to " + connector->target + ": " + status.words()};
      return;
    }
    return;
  }
  if (peer.state != Peer::State::kDialing) return;
  peer.last = status;
  if (refused.code == wire::Refusal::kCrossed) {
    retry_later(peer, now);
  } else if (refused.code == wire::Refusal::kSpeech || refused.code == wire::Refusal::kFabric) {
    fail_connectors(peer, status);
    destroy(peer);
  } else {
    settle_attempt(peer, peer.connectors.front(), status, now);
  }
}

// --- Ends.

void PeerTable::on_last_word(Peer& peer, const Frame& frame, Time now) {
  Progress::Exclusive(progress_)->handle_statements(*peer.member, now, frame.body);
}

void PeerTable::on_goodbye(Peer& peer, Time now) {
  Progress::Exclusive(progress_)->handle_peer_gone(*peer.member, now);
  peer.said_goodbye = true;
  fail_connectors(peer, {Code::kRemote, "the peer said goodbye"});
  end_peer(peer);
  reap(peer);
}

void PeerTable::broke_protocol(Peer& peer, const char* what, Time now) {
  const Status status(Code::kRemote, "the peer broke the protocol: it sent " + std::string(what));
  log_warn("peer {}: {}", peer.name, status.words());
  fail_connectors(peer, status);
  if (peer.state == Peer::State::kUp) {
    Progress::Exclusive(progress_)->handle_peer_hint(*peer.member, now);
    end_peer(peer);
  } else {
    destroy(peer);
  }
}

void PeerTable::on_end(OobStream& stream, Time now) {
  if (!stream.peer) return;
  Peer& peer = *stream.peer;
  if (std::find(peer.dials.begin(), peer.dials.end(), &stream) != peer.dials.end()) {
    on_dial_end(peer, stream, now);
  } else if (peer.state == Peer::State::kUp) {
    on_break(peer, stream, now);
  } else {
    // Closed before the welcome: it is overrun by strangers, or the listener is gone. Time will
    // tell.
    peer.last = {Code::kRemote,
                 stream.end().words() + " before it answered (is its listener gone?)"};
    retry_later(peer, now);
  }
}

}  // namespace weft
