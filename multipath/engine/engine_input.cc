// SPDX-License-Identifier: Apache-2.0
// What the fabric found, handed to the connection it is for. Datagrams are decoded once a batch, in
// receive(), where payload gets its destination; everything else waits for arrived(), after the
// copy.
#include "multipath/engine/engine.h"

namespace weft {

Member* Engine::find(const wire::Address& to) const {
  const size_t index = to.connection & 0xffff;
  if (index >= members_.size()) return nullptr;
  Member* member = members_[index].get();
  return member->own == to && member->connection ? member : nullptr;
}

Member* Engine::find_link(LinkId link) {
  if (last_link_member_ && last_link_ == link) return last_link_member_;
  const auto found = links_.find(link);
  if (found == links_.end()) return nullptr;
  last_link_ = link;
  last_link_member_ = found->second;
  return found->second;
}

void Engine::decode(Datagram& datagram, Decoded* out) {
  const std::span bytes(datagram.bytes, datagram.size);
  out->member = nullptr;
  wire::CommonHeader common;
  if (!wire::decode_common(bytes, &common)) {
    ++counters_.malformed;
    return;
  }
  Member* member = find(common.to);
  if (!member) {
    ++counters_.strangers;
    return;
  }
  out->kind = common.kind;
  bool good = true;
  switch (common.kind) {
    case wire::Kind::kData:
      good = wire::decode_data(bytes, &out->data);
      if (!good) break;
      datagram.destination = member->connection->claim(now_, out->data);
      datagram.header_bytes = wire::kDataHeaderBytes;
      activate(*member);
      if (!datagram.destination) return;  // a duplicate, or nobody's
      break;
    case wire::Kind::kProbe: good = wire::decode_probe(bytes, &out->probe); break;
    case wire::Kind::kControl: break;  // the connection decodes it, once
  }
  if (!good) {
    ++counters_.malformed;
    return;
  }
  out->member = member;
}

void Engine::receive(std::span<Datagram> batch) {
  look_at_clock();
  if (decoded_.size() < batch.size()) decoded_.resize(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i].destination = nullptr;
    batch[i].cookie = i;
    decode(batch[i], &decoded_[i]);
  }
}

void Engine::arrived(std::span<const Datagram> batch) {
  for (const Datagram& datagram : batch) {
    if (datagram.cookie >= decoded_.size()) continue;
    Decoded& decoded = decoded_[datagram.cookie];
    Member* member = decoded.member;
    if (!member) continue;
    decoded.member = nullptr;
    switch (decoded.kind) {
      case wire::Kind::kData:
        member->connection->handle_arrival(now_, decoded.data, datagram.congestion_marked);
        break;
      case wire::Kind::kProbe:
        member->connection->handle_probe(now_, decoded.probe, datagram.congestion_marked);
        break;
      case wire::Kind::kControl:
        member->connection->handle_control(now_, std::span(datagram.bytes, datagram.size));
        break;
    }
    activate(*member);
  }
}

void Engine::landed(std::span<const Landing> batch) {
  look_at_clock();
  for (const Landing& l : batch) {
    Member* member = find_link(l.link);
    if (!member) continue;
    member->connection->handle_landing(now_, l.path, l.epoch, l.immediate, l.bytes);
    activate(*member);
  }
}

void Engine::completed(std::span<const Completion> batch) {
  for (const Completion& c : batch) {
    Member* member = find_link(c.link);
    if (!member) continue;
    member->connection->handle_completion(c.cookie);
    activate(*member);
  }
}

void Engine::path_changed(std::span<const PathChange> batch) {
  for (const PathChange& c : batch) {
    Member* member = find_link(c.link);
    if (!member) continue;
    if (c.what == PathChange::What::kKilled) {
      member->connection->handle_path_killed(now_, c.path, c.epoch);
    } else {
      member->connection->handle_path_broken(now_, c.path, c.epoch);
    }
    activate(*member);
  }
}

}  // namespace weft
