// SPDX-License-Identifier: Apache-2.0
// The contract's calls, turned into questions to the network and deliveries from the inbox.
#include "transport/sim/sim_fabric.h"

#include <algorithm>
#include <array>

namespace weft::sim {

Offloads SimFabric::offloads() const {
  const SimConfig& c = network_.config();
  Offloads o;
  o.places = c.mode == Mode::kPlacing;
  o.reliable = c.reliable;
  o.ordered_path = c.ordered_path;
  o.ecn = c.faults.mark > 0;
  return o;
}

Result<LinkId> SimFabric::create_link(LinkAddress* address) {
  Result<LinkId> link = state().create_link();
  if (link.ok()) *address = state().address_of(*link);
  return link;
}

Status SimFabric::connect_link(LinkId link, std::span<const std::byte> peer_address) {
  LinkEnd* end = state().link(link);
  if (!end)
    return Status(Code::kInvalidArgument, "sim: connect_link of a link that does not exist");
  if (end->connected)
    return Status(Code::kInvalidArgument, "sim: connect_link of a link that is connected");
  Result<LinkId> peer = state().read_address(peer_address, network_.state(1 - number_));
  if (!peer.ok()) return peer.status();
  end->connected = true;
  end->peer = *peer;
  for (PathEnd& p : end->paths) p.open = true;
  return Status();
}

int SimFabric::paths(LinkId link) const {
  const LinkEnd* end = state().link(link);
  return end && end->connected ? static_cast<int>(end->paths.size()) : 0;
}

Result<MemoryKeys> SimFabric::register_memory(const MemoryRange& range) {
  return state().regions().add(range, static_cast<uint32_t>(network_.random().next() >> 32));
}

void SimFabric::deregister_memory(MemoryKeys keys) {
  if (!state().regions().remove(keys))
    network_.violation(number_, "deregister_memory of keys not in use");
}

size_t SimFabric::post(Time now, std::span<const SegmentPost> batch) {
  const size_t take = network_.admit(batch.size());
  const bool writes = network_.config().mode == Mode::kPlacing;
  for (size_t i = 0; i < take; ++i) {
    if (writes)
      network_.post_write(number_, now, batch[i]);
    else
      network_.post_datagram(number_, now, batch[i]);
  }
  return take;
}

size_t SimFabric::post_control(Time now, std::span<const ControlPost> batch) {
  const size_t take = network_.admit(batch.size());
  for (size_t i = 0; i < take; ++i) network_.post_control(number_, now, batch[i]);
  return take;
}

size_t SimFabric::poll(Time, size_t budget, FabricSink& sink) {
  if (network_.paused(number_)) return 0;
  const std::deque<InboxItem>& inbox = state().inbox();
  size_t delivered = 0;
  while (delivered < budget && !inbox.empty()) {
    const InboxItem::Kind kind = inbox.front().kind;
    const size_t most = std::min({budget - delivered, kBatch, inbox.size()});
    size_t run = 1;
    while (run < most && inbox[run].kind == kind) ++run;
    switch (kind) {
      case InboxItem::Kind::kDatagram: deliver_datagrams(run, sink); break;
      case InboxItem::Kind::kLanding: deliver_landings(run, sink); break;
      case InboxItem::Kind::kCompletion: deliver_completions(run, sink); break;
      case InboxItem::Kind::kPathChange: deliver_changes(run, sink); break;
    }
    delivered += run;
  }
  return delivered;
}

void SimFabric::deliver_datagrams(size_t count, FabricSink& sink) {
  std::array<Packet*, kBatch> packets;
  std::array<Datagram, kBatch> datagrams;
  std::array<Placement, kBatch> placements;
  for (size_t i = 0; i < count; ++i) {
    packets[i] = state().pop().packet;
    datagrams[i] = Datagram{};
    datagrams[i].bytes = packets[i]->bytes.data();
    datagrams[i].size = static_cast<uint32_t>(packets[i]->bytes.size());
    datagrams[i].congestion_marked = packets[i]->marked;
  }
  sink.receive({datagrams.data(), count});
  size_t places = 0;
  for (size_t i = 0; i < count; ++i) {
    const Datagram& d = datagrams[i];
    if (!d.destination) continue;
    if (d.header_bytes > d.size) {
      network_.violation(number_, "the sink claims a header that is longer than its datagram");
      continue;
    }
    placements[places++] = {d.destination, d.bytes + d.header_bytes, d.size - d.header_bytes};
  }
  if (places != 0) network_.memory().place(placements.data(), places);
  sink.arrived({datagrams.data(), count});
  for (size_t i = 0; i < count; ++i) network_.drop_holder(*packets[i]);
}

void SimFabric::deliver_landings(size_t count, FabricSink& sink) {
  std::array<Landing, kBatch> batch;
  for (size_t i = 0; i < count; ++i) batch[i] = state().pop().landing;
  sink.landed({batch.data(), count});
}

void SimFabric::deliver_completions(size_t count, FabricSink& sink) {
  std::array<Completion, kBatch> batch;
  for (size_t i = 0; i < count; ++i) batch[i] = state().pop().completion;
  sink.completed({batch.data(), count});
}

void SimFabric::deliver_changes(size_t count, FabricSink& sink) {
  std::array<PathChange, kBatch> batch;
  for (size_t i = 0; i < count; ++i) batch[i] = state().pop().change;
  sink.path_changed({batch.data(), count});
}

}  // namespace weft::sim
