// SPDX-License-Identifier: Apache-2.0
// What the way to a peer carries: searched for once the stream is there, which shows that there is
// a way, and before the hello, which tells it.
#include <algorithm>

#include "multipath/endpoint/peer_table.h"
#include "transport/system/log.h"

namespace weft {
namespace {

constexpr int kPatience = 64;                // datagrams read in one go
constexpr Duration kKnownFor = seconds(60);  // ways change, and the next connection looks again

}  // namespace

void PeerTable::open_probe() {
  if (!options_.probe_sizes || options_.address.loopback()) return;
  const Status opened = probe_.open(options_.address);
  if (opened.ok()) {
    out_of_band_.watch_guest(probe_.descriptor());
  } else {
    log_warn("{}: {}; the interface's MTU is taken for that of every way", options_.device_name,
             opened.words());
  }
}

uint32_t PeerTable::segment_bytes(const Peer& peer) const {
  const uint32_t most = fabric_.max_segment_bytes();
  return peer.segment_bytes == 0 ? most : std::min(most, peer.segment_bytes);
}

// True when as much is known as will be; else the search goes on, and introduce() is called again.
bool PeerTable::find_size(Peer& peer, Time now) {
  if (peer.segment_bytes != 0 || probe_.port() == 0 || peer.probe_port == 0) return true;
  if (peer.address == options_.address) return true;
  const uint32_t most = fabric_.max_segment_bytes();
  const auto known = known_sizes_.find(peer.address.text());
  if (known != known_sizes_.end() && now < known->second.until) {
    peer.segment_bytes = std::min(most, known->second.segment);
    return true;
  }
  if (!peer.search) {
    peer.search = std::make_unique<SizeSearch>(most);
    peer.search_number = PathProbe::search_of(random_.next());
  }
  if (!peer.search->worthwhile() || peer.search->decided(now)) {
    settle_size(peer, now);
    return true;
  }
  for (const SizeSearch::Ask& ask : peer.search->begin_round(now)) {
    probe_.send(peer.address, peer.probe_port, peer.connectors.front()->cookie, peer.search_number,
                ask.way, ask.segment);
  }
  peer.retry_at = peer.search->next();
  schedule(peer);
  return false;
}

void PeerTable::end_search(Peer& peer) {
  peer.search.reset();
  const bool others =
      std::any_of(peers_.begin(), peers_.end(), [](const auto& p) { return p->search != nullptr; });
  if (!others) probe_.rest();
}

void PeerTable::settle_size(Peer& peer, Time now) {
  const uint32_t most = fabric_.max_segment_bytes();
  const uint32_t found = peer.search->worthwhile() ? peer.search->answer() : most;
  end_search(peer);
  if (found == 0) {
    // Slow, and sound: what carries no more than this carries no connection.
    peer.segment_bytes = std::min(most, SizeSearch::kSmallest);
    log_warn(
        "peer {}: no size probe came back, so packets of {} bytes have to do; if the network "
        "carries more, WEFT_SEGMENT can say so",
        peer.name, peer.segment_bytes);
    return;
  }
  peer.segment_bytes = found;
  if (known_sizes_.size() >= kMaxKnownSizes) known_sizes_.clear();
  known_sizes_[peer.address.text()] = {found, now + kKnownFor};
  if (found < most) {
    log_info("peer {}: the way to it carries segments of {} bytes, where the interface takes {}",
             peer.name, found, most);
  }
}

// Probes of others, which are returned to who knows a listener of ours, and our own on their way
// back.
void PeerTable::on_guest(Time now) {
  PathProbe::Arrival arrival;
  for (int patience = kPatience; probe_.next(&arrival, &patience);) {
    if (!arrival.probe.back) {
      if (find_listener(arrival.probe.cookie)) probe_.give_back(arrival);
      continue;
    }
    const auto of = std::find_if(peers_.begin(), peers_.end(), [&](const auto& p) {
      return p->search && p->search_number == arrival.search();
    });
    if (of == peers_.end()) continue;
    Peer& peer = **of;
    const bool asked =
        std::any_of(peer.connectors.begin(), peer.connectors.end(),
                    [&](const Connector* c) { return c->cookie == arrival.probe.cookie; });
    if (!asked) continue;
    peer.search->came_back(arrival.way(), arrival.segment, now);
    // Decided, or a way turns out to be alive, which is to be asked for more.
    const bool due = peer.search->decided(now) || peer.search->next() <= now;
    if (peer.state == Peer::State::kDialing && due) introduce(peer, now);
  }
}

}  // namespace weft
