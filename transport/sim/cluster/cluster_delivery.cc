// SPDX-License-Identifier: Apache-2.0
// What has come to a host, handed to its sink; see cluster_fabric.h.
#include <algorithm>
#include <array>
#include <cstring>

#include "transport/sim/cluster/cluster_fabric.h"

namespace weft::sim {

size_t ClusterFabric::poll(Time now, size_t budget, FabricSink& sink) {
  size_t delivered = deliver_news(budget, sink);
  std::deque<Frame*>& inbox = cluster_.nic(host_).inbox();
  while (delivered < budget && !inbox.empty()) {
    if (inbox.front()->is_write) {
      Frame* frame = inbox.front();
      inbox.pop_front();
      cluster_.count_arrival(now, *frame);
      take_write(*frame);
      cluster_.frames().give_back(frame);
      delivered += deliver_news(budget - delivered, sink);
    } else {
      delivered += deliver_datagrams(now, budget - delivered, sink);
    }
  }
  return delivered;
}

size_t ClusterFabric::deliver_datagrams(Time now, size_t budget, FabricSink& sink) {
  std::deque<Frame*>& inbox = cluster_.nic(host_).inbox();
  std::array<Frame*, kBatch> frames;
  std::array<Datagram, kBatch> datagrams;
  size_t count = 0;
  while (count < std::min(kBatch, budget) && !inbox.empty() && !inbox.front()->is_write) {
    Frame* frame = inbox.front();
    inbox.pop_front();
    cluster_.count_arrival(now, *frame);
    frames[count] = frame;
    datagrams[count] = Datagram{};
    datagrams[count].bytes = frame->bytes.data();
    datagrams[count].size =
        frame->control ? static_cast<uint32_t>(frame->bytes.size()) : frame->wire_bytes;
    datagrams[count++].congestion_marked = frame->marked;
  }
  sink.receive({datagrams.data(), count});
  for (size_t i = 0; i < count && cluster_.config().carry; ++i) {
    const Datagram& d = datagrams[i];
    if (!d.destination || d.header_bytes >= d.size) continue;
    std::memcpy(d.destination, d.bytes + d.header_bytes, d.size - d.header_bytes);
  }
  sink.arrived({datagrams.data(), count});
  for (size_t i = 0; i < count; ++i) cluster_.frames().give_back(frames[i]);
  return count;
}

// A piece of a write goes where it belongs if it is the next of the write under way, or the first
// of another.
void ClusterFabric::take_write(const Frame& frame) {
  const Frame::Write& w = frame.write;
  PathEnd* p = path(frame.link, frame.path);
  if (!p || !p->open || p->epoch != w.epoch) return;
  const uint32_t piece = frame.wire_bytes - cluster_.config().header_bytes;
  if (w.offset == 0) {
    p->number = w.number;
    p->have = 0;
  } else if (p->number != w.number || p->have != w.offset) {
    p->number = UINT64_MAX;  // a gap: the write is gone
    return;
  }
  if (w.total != 0 && !regions_.may_write(w.key, w.address, w.total))
    return cluster_.violation(host_, "a write's remote key or range is not registered there");
  if (cluster_.config().carry && piece != 0)
    std::memcpy(reinterpret_cast<void*>(w.address + w.offset), frame.bytes.data(), piece);
  p->have += piece;
  if (p->have < w.total) return;
  p->number = UINT64_MAX;
  news_.push_back(
      {News::Kind::kLanding, {frame.link, frame.path, w.epoch, w.immediate, w.total}, {}, {}});
}

size_t ClusterFabric::deliver_news(size_t budget, FabricSink& sink) {
  size_t delivered = 0;
  while (delivered < budget && !news_.empty()) {
    const News news = news_.front();
    news_.pop_front();
    ++delivered;
    switch (news.kind) {
      case News::Kind::kLanding: sink.landed({&news.landing, 1}); break;
      case News::Kind::kCompletion: sink.completed({&news.completion, 1}); break;
      case News::Kind::kChange: sink.path_changed({&news.change, 1}); break;
    }
  }
  return delivered;
}

}  // namespace weft::sim
