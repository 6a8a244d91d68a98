// SPDX-License-Identifier: Apache-2.0
// One request for each flow: asked on the stream, perhaps again on another, and answered once.
//
// A request has a number of its asker. Whoever is asked remembers what became of the latest ones,
// so that asking again is harmless: what waits goes on waiting, what was served or refused gets the
// same answer, and what is older than anything remembered is refused.
#include <algorithm>

#include "multipath/endpoint/peer_table.h"

namespace weft {

// Asks for the flows that were not asked for yet. Without a stream they wait for one.
void PeerTable::send_opens(Peer& peer, Time now) {
  std::vector<std::byte> frames;
  for (Connector* connector : peer.connectors) {
    if (!peer.stream || connector->state != Connector::State::kWaiting) continue;
    connector->state = Connector::State::kOpening;
    connector->request = ++last_request_ % wire::kTheHello;
    wire::append_open(&frames, {connector->request, connector->cookie});
  }
  if (!frames.empty()) out_of_band_.send(*peer.stream, frames);
  if (!peer.connectors.empty()) watch_stream(peer, now);
}

// The requests that wait for an answer, oldest first, at most so many.
void PeerTable::ask_again(Peer& peer, size_t most) {
  std::vector<std::byte> frames;
  for (const Connector* connector : peer.connectors) {
    if (connector->state != Connector::State::kOpening) continue;
    if (most-- == 0) break;
    wire::append_open(&frames, {connector->request, connector->cookie});
  }
  if (!frames.empty()) out_of_band_.send(*peer.stream, frames);
}

void PeerTable::answer(Peer& peer, uint32_t request, uint32_t flow) {
  peer.served.remember(request, flow);
  std::vector<std::byte> frame;
  wire::append_opened(&frame, {request, flow});
  say(peer, frame);
}

void PeerTable::refuse(Peer& peer, uint32_t request, wire::Refusal code, const std::string& words) {
  peer.served.remember(request, ServedRequests::kRefused);
  std::vector<std::byte> frame;
  wire::append_refused(&frame, request, code, words);
  say(peer, frame);
}

void PeerTable::say(Peer& peer, std::span<const std::byte> frame) {
  if (peer.stream) out_of_band_.send(*peer.stream, frame);
}

void PeerTable::on_open(Peer& peer, const Frame& frame) {
  wire::Open open;
  if (!wire::decode_open(frame.body, &open)) return;
  if (const uint32_t* before = peer.served.find(open.request)) {
    if (*before == ServedRequests::kRefused) {
      refuse(peer, open.request, wire::Refusal::kFailed, "it was refused before");
    } else {
      answer(peer, open.request, *before);
    }
    return;
  }
  Listener* listener = find_listener(open.cookie);
  const auto asked = [&](const auto& w) { return w.peer == &peer && w.request == open.request; };
  if (listener && std::any_of(listener->waiting.begin(), listener->waiting.end(), asked)) {
    return;  // and waits
  }
  if (peer.served.forgotten(open.request) || !listener || listener->context != peer.key.context) {
    refuse(peer, open.request, wire::Refusal::kNoListener, "nobody listens there any more");
  } else if (listener->waiting.size() >= Listener::kMaxWaiting) {
    refuse(peer, open.request, wire::Refusal::kFull, "too many wait there to be accepted");
  } else {
    listener->waiting.push_back({&peer, open.request});
  }
}

void PeerTable::on_opened(Peer& peer, const Frame& frame) {
  wire::Opened opened;
  if (!wire::decode_opened(frame.body, &opened)) return;
  const auto found =
      std::find_if(peer.connectors.begin(), peer.connectors.end(), [&](const Connector* c) {
        return c->state == Connector::State::kOpening && c->request == opened.request;
      });
  if (found == peer.connectors.end()) return;
  Connector& connector = **found;
  peer.connectors.erase(found);
  connector.peer = nullptr;
  std::unique_ptr<SendFlow> flow;
  {
    Progress::Exclusive engine(progress_);
    flow = engine->open_send_flow(*peer.member, opened.flow);
  }
  if (!flow) {
    connector.state = Connector::State::kFailed;
    connector.status = {Code::kRemote,
                        "connect to " + connector.target +
                            ": the connection is dead, or the peer named a flow that cannot be"};
    return;
  }
  connector.state = Connector::State::kDone;
  connector.flow = flow.get();
  peer.flows.push_back(std::move(flow));
}

}  // namespace weft
