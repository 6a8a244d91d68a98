// SPDX-License-Identifier: Apache-2.0
// recvmmsg into the arena, and the batch handed to the sink and placed.
#include "transport/udp/receive_batch.h"

#include <algorithm>
#include <cerrno>

namespace weft::udp {
namespace {

// So that a batch is still in the cache when it is copied on: 16 of the largest datagrams.
constexpr size_t kArenaBytes = 1u << 20;
constexpr size_t kMinSlots = 8;
constexpr size_t kMaxSlots = 256;

}  // namespace

ReceiveBatch::ReceiveBatch(uint32_t datagram_bytes) {
  const size_t lines = (size_t{datagram_bytes} + sizeof(Line) - 1) / sizeof(Line);
  slots_ = std::clamp(kArenaBytes / (lines * sizeof(Line)), kMinSlots, kMaxSlots);
  arena_ = std::make_unique_for_overwrite<Line[]>(slots_ * lines);
  room_.resize(slots_);
  headers_.resize(slots_);
  datagrams_.resize(slots_);
  placements_.resize(slots_);
  for (size_t i = 0; i < slots_; ++i) {
    room_[i] = {arena_[i * lines].bytes, datagram_bytes};
    headers_[i].msg_hdr.msg_iov = &room_[i];
    headers_[i].msg_hdr.msg_iovlen = 1;
  }
}

ReceiveBatch::Read ReceiveBatch::read(int socket, size_t limit, UdpCounters& counters) {
  const size_t asked = std::min(limit, room());
  Read out;
  if (asked == 0) return out;
  int got = -1;
  // The second try is for news from ICMP, which stand in for an answer once.
  for (int attempt = 0; attempt < 2 && got < 0; ++attempt) {
    got = ::recvmmsg(socket, &headers_[used_], static_cast<unsigned>(asked), MSG_DONTWAIT, nullptr);
    ++counters.receive_calls;
    if (got >= 0) break;
    if (errno == EAGAIN) break;
    ++counters.receive_errors;
  }
  out.taken = got > 0 ? static_cast<size_t>(got) : 0;
  out.drained = out.taken < asked;
  for (const size_t end = used_ + out.taken; used_ < end; ++used_) {
    const mmsghdr& h = headers_[used_];
    if (h.msg_hdr.msg_flags & MSG_TRUNC) {
      ++counters.truncated;
      continue;
    }
    ++counters.received;
    counters.received_bytes += h.msg_len;
    Datagram& d = datagrams_[shown_++];
    d = Datagram{};
    d.bytes = static_cast<const std::byte*>(room_[used_].iov_base);
    d.size = h.msg_len;
  }
  return out;
}

size_t ReceiveBatch::deliver(FabricSink& sink, Memory& memory) {
  const size_t count = shown_;
  used_ = shown_ = 0;
  if (count == 0) return 0;
  const std::span<Datagram> batch(datagrams_.data(), count);
  sink.receive(batch);
  size_t placed = 0;
  for (const Datagram& d : batch) {
    if (!d.destination || d.header_bytes >= d.size) continue;
    placements_[placed++] = {d.destination, d.bytes + d.header_bytes, d.size - d.header_bytes};
  }
  if (placed != 0) memory.place(placements_.data(), placed);
  sink.arrived(batch);
  return count;
}

}  // namespace weft::udp
