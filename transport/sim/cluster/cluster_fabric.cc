// SPDX-License-Identifier: Apache-2.0
// Posts into frames, frames into arrivals; see cluster_fabric.h. The address of a link is 16 bytes:
//   0 u32 magic, 4 u32 host, 8 u32 link, 12 u16 paths, 14 u8 mode, 15 reserved
#include "transport/sim/cluster/cluster_fabric.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "transport/wire/cursor.h"
#include "transport/wire/packet.h"

namespace weft::sim {
namespace {

constexpr uint32_t kAddressMagic = 0x4c435357;  // "WSCL"
constexpr size_t kAddressBytes = 16;
constexpr uint32_t kDatagramQueue = 0;

}  // namespace

Offloads ClusterFabric::offloads() const {
  Offloads o;
  o.places = o.ordered_path = cluster_.config().placing;
  o.ecn = cluster_.config().topology.cable.mark_all > 0;
  return o;
}

uint32_t ClusterFabric::max_segment_bytes() const {
  const ClusterConfig& c = cluster_.config();
  return c.placing ? c.max_segment_bytes : c.packet_bytes;
}

uint32_t ClusterFabric::speed_mbps() const {
  return static_cast<uint32_t>(cluster_.config().topology.cable.bits_per_second / 1'000'000);
}

ClusterFabric::LinkEnd* ClusterFabric::link(LinkId id) {
  return id < links_.size() && !links_[id].closed ? &links_[id] : nullptr;
}

ClusterFabric::PathEnd* ClusterFabric::path(LinkId id, PathIndex index) {
  LinkEnd* end = link(id);
  return end && end->connected && index < end->paths.size() ? &end->paths[index] : nullptr;
}

Result<LinkId> ClusterFabric::create_link(LinkAddress* address) {
  links_.emplace_back();
  links_.back().paths.resize(static_cast<size_t>(cluster_.config().paths));
  for (PathEnd& p : links_.back().paths)
    p.entropy = static_cast<uint32_t>(cluster_.random().next());
  const auto id = static_cast<LinkId>(links_.size() - 1);
  address->assign(kAddressBytes, {});
  wire::Writer w(*address);
  w.put<uint32_t>(kAddressMagic);
  w.put<uint32_t>(host_);
  w.put<uint32_t>(id);
  w.put<uint16_t>(static_cast<uint16_t>(cluster_.config().paths));
  w.put<uint8_t>(cluster_.config().placing);
  return id;
}

Status ClusterFabric::connect_link(LinkId id, std::span<const std::byte> peer_address) {
  LinkEnd* end = link(id);
  if (!end || end->connected) {
    return Status(Code::kInvalidArgument, "sim: no such link, or it is connected");
  }
  wire::Reader r(peer_address);
  const auto magic = r.get<uint32_t>();
  const auto host = r.get<uint32_t>();
  const auto peer_link = r.get<uint32_t>();
  const auto paths = r.get<uint16_t>();
  const auto placing = r.get<uint8_t>();
  const ClusterConfig& c = cluster_.config();
  if (r.failed() || magic != kAddressMagic || host >= cluster_.hosts() || host == host_ ||
      paths != c.paths || (placing != 0) != c.placing || !cluster_.fabric(host).link(peer_link)) {
    return Status(Code::kRemote, "sim: the peer's address is of no link of this cluster");
  }
  end->connected = true;
  end->peer = host;
  end->peer_link = peer_link;
  return Status();
}

int ClusterFabric::paths(LinkId id) const {
  const bool there = id < links_.size() && links_[id].connected && !links_[id].closed;
  return there ? static_cast<int>(links_[id].paths.size()) : 0;
}

void ClusterFabric::close_link(LinkId id) {
  LinkEnd* end = link(id);
  if (!end) return;
  for (PathEnd& p : end->paths) {
    for (const Write& w : p.writes) cluster_.nic(host_).unqueued(w.post.bytes - w.sent);
    p.writes.clear();
  }
  end->closed = true;
}

Result<MemoryKeys> ClusterFabric::register_memory(const MemoryRange& range) {
  return regions_.add(range, static_cast<uint32_t>(cluster_.random().next() >> 32));
}

void ClusterFabric::deregister_memory(MemoryKeys keys) {
  if (!regions_.remove(keys)) cluster_.violation(host_, "deregister_memory of keys not in use");
}

void ClusterFabric::kill_path(LinkId id, PathIndex index, uint32_t epoch) {
  PathEnd* p = path(id, index);
  if (!p || !cluster_.config().placing) return;
  if (p->open && p->epoch == epoch) {
    p->open = false;
    for (const Write& w : p->writes) {
      cluster_.nic(host_).unqueued(w.post.bytes - w.sent);
      news_.push_back({News::Kind::kCompletion, {}, {id, w.post.cookie}, {}});
    }
    p->writes.clear();
  }
  news_.push_back({News::Kind::kChange, {}, {}, {id, index, epoch, PathChange::What::kKilled}});
}

void ClusterFabric::reopen_path(LinkId id, PathIndex index, uint32_t epoch) {
  PathEnd* p = path(id, index);
  if (!p || !cluster_.config().placing || (p->open && p->epoch == epoch)) return;
  if (p->open) return cluster_.violation(host_, "reopen_path while an older epoch is open");
  p->open = true;
  p->epoch = epoch;
  p->number = UINT64_MAX;
}

size_t ClusterFabric::room() const { return cluster_.nic(host_).room(max_segment_bytes()); }

size_t ClusterFabric::post(Time now, std::span<const SegmentPost> batch) {
  const size_t take = std::min(batch.size(), room());
  for (size_t i = 0; i < take; ++i) {
    LinkEnd* end = link(batch[i].link);
    if (!end || batch[i].path >= end->paths.size()) {
      cluster_.violation(host_, "a post on no path");
    } else if (cluster_.config().placing) {
      if (!post_write(now, batch[i])) cluster_.violation(host_, "a write from unregistered memory");
    } else {
      post_datagram(batch[i], *end);
      cluster_.nic(host_).queued(now, kDatagramQueue, batch[i].bytes);
    }
  }
  return take;
}

void ClusterFabric::post_datagram(const SegmentPost& post, LinkEnd& end) {
  Frame* frame = cluster_.frames().take();
  frame->from = host_;
  frame->to = end.peer;
  frame->link = end.peer_link;
  frame->path = post.path;
  frame->entropy = end.paths[post.path].entropy;
  frame->wire_bytes = post.header_bytes + post.bytes;
  frame->bytes.resize(cluster_.config().carry ? frame->wire_bytes : post.header_bytes);
  std::memcpy(frame->bytes.data(), post.header.data(), post.header_bytes);
  if (cluster_.config().carry && post.bytes != 0)
    std::memcpy(frame->bytes.data() + post.header_bytes, post.source, post.bytes);
  datagrams_.push_back(frame);
}

bool ClusterFabric::post_write(Time now, const SegmentPost& post) {
  if (post.bytes != 0 && !regions_.may_read(post.local_key, post.source, post.bytes)) return false;
  PathEnd& p = *path(post.link, post.path);
  if (!p.open || p.epoch != post.epoch) {  // flushed at once
    news_.push_back({News::Kind::kCompletion, {}, {post.link, post.cookie}, {}});
    return true;
  }
  if (p.queue == 0) {
    queues_.push_back({post.link, post.path});
    p.queue = static_cast<uint32_t>(queues_.size());
  }
  p.writes.push_back({post, 0, writes_++});
  cluster_.nic(host_).queued(now, p.queue, post.bytes);
  return true;
}

bool ClusterFabric::next_frame(uint32_t queue, Time, Frame& frame) {
  if (queue == kDatagramQueue) {
    if (datagrams_.empty()) return false;
    std::swap(frame, *datagrams_.front());
    cluster_.frames().give_back(datagrams_.front());
    datagrams_.pop_front();
    const auto headers = static_cast<uint32_t>(wire::kDataHeaderBytes);
    cluster_.nic(host_).unqueued(frame.wire_bytes - std::min(frame.wire_bytes, headers));
    return true;
  }
  const auto [id, index] = queues_[queue - 1];
  PathEnd* p = path(id, index);
  if (!p || p->writes.empty()) return false;
  Write& w = p->writes.front();
  const ClusterConfig& c = cluster_.config();
  const uint32_t piece = std::min(c.packet_bytes, w.post.bytes - w.sent);
  frame.from = host_;
  frame.to = links_[id].peer;
  frame.link = links_[id].peer_link;
  frame.path = index;
  frame.entropy = p->entropy;
  frame.wire_bytes = piece + c.header_bytes;
  frame.is_write = true;
  frame.write = {w.number, w.post.remote_address, w.post.remote_key, w.post.bytes,
                 w.sent,   w.post.epoch,          w.post.immediate};
  frame.bytes.clear();
  if (c.carry) frame.bytes.assign(w.post.source + w.sent, w.post.source + w.sent + piece);
  w.sent += piece;
  cluster_.nic(host_).unqueued(piece);
  if (w.sent == w.post.bytes) {
    news_.push_back({News::Kind::kCompletion, {}, {id, w.post.cookie}, {}});
    p->writes.pop_front();
  }
  return true;
}

size_t ClusterFabric::post_control(Time now, std::span<const ControlPost> batch) {
  for (const ControlPost& post : batch) {
    LinkEnd* end = link(post.link);
    if (!end || !end->connected || post.path >= end->paths.size()) {
      cluster_.violation(host_, "control on no path");
      continue;
    }
    Frame* frame = cluster_.frames().take();
    frame->from = host_;
    frame->to = end->peer;
    frame->link = end->peer_link;
    frame->path = post.path;
    frame->entropy = end->paths[post.path].entropy;
    frame->wire_bytes = post.bytes;
    frame->control = true;
    frame->bytes.assign(post.data.data(), post.data.data() + post.bytes);
    cluster_.nic(host_).control(now, *frame);
  }
  return batch.size();
}

void ClusterFabric::look(Time now) {
  if (cluster_.on_look) cluster_.on_look(host_, now);
}

}  // namespace weft::sim
