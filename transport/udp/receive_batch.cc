// SPDX-License-Identifier: Apache-2.0
// recvmmsg into the arena, trains cut into datagrams, and these handed to the sink and placed.
#include "transport/udp/receive_batch.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace weft::udp {
namespace {

constexpr size_t kArenaBytes = 1u << 20;
constexpr size_t kMinSlots = 8;
constexpr size_t kMaxSlots = 256;
// A train is one IP packet to the kernel, and no longer.
constexpr uint32_t kTrainBytes = 65536;
constexpr size_t kTrainSlots = 16;
// Trains' slots are not a power of two apart: of single datagrams in slots 64 KB apart all would
// share a few sets of the cache.
constexpr size_t kSkew = 17;
// Shown to the sink at once.
constexpr size_t kShown = 64;

// What came beside a message: where to cut it (0: nowhere), and whether it was marked.
struct Aside {
  uint32_t cut = 0;
  bool marked = false;
};

constexpr int kCongestionExperienced = 3;
constexpr int kEcnMask = 3;

Aside read_aside(msghdr& h) {
  Aside out;
  for (cmsghdr* c = CMSG_FIRSTHDR(&h); c != nullptr; c = CMSG_NXTHDR(&h, c)) {
    const size_t bytes = c->cmsg_len - CMSG_LEN(0);
    int value = 0;  // a byte or an int, as the kernel likes
    std::memcpy(&value, CMSG_DATA(c), std::min(bytes, sizeof value));
    if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      out.cut = value > 0 ? static_cast<uint32_t>(value) : 0;
    } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
               (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
      out.marked = (value & kEcnMask) == kCongestionExperienced;
    }
  }
  return out;
}

}  // namespace

ReceiveBatch::ReceiveBatch(uint32_t datagram_bytes, bool trains) : datagram_bytes_(datagram_bytes) {
  const uint32_t slot_bytes = trains ? kTrainBytes : datagram_bytes;
  const size_t lines = (size_t{slot_bytes} + sizeof(Line) - 1) / sizeof(Line);
  const size_t apart = trains ? lines + kSkew : lines;
  slots_ =
      trains ? kTrainSlots : std::clamp(kArenaBytes / (lines * sizeof(Line)), kMinSlots, kMaxSlots);
  arena_ = std::make_unique_for_overwrite<Line[]>(slots_ * apart);
  room_.resize(slots_);
  headers_.resize(slots_);
  control_.resize(slots_);
  held_.resize(slots_);
  datagrams_.resize(kShown);
  placements_.resize(kShown);
  for (size_t i = 0; i < slots_; ++i) {
    room_[i] = {arena_[i * apart].bytes, slot_bytes};
    headers_[i].msg_hdr.msg_iov = &room_[i];
    headers_[i].msg_hdr.msg_iovlen = 1;
    headers_[i].msg_hdr.msg_control = control_[i].bytes;
  }
}

ReceiveBatch::Read ReceiveBatch::read(int socket, size_t wanted, size_t messages,
                                      UdpCounters& counters) {
  Read out;
  const size_t likely = (wanted + usual_train_ - 1) / usual_train_;
  const size_t asked = std::min({likely, messages, room()});
  if (asked == 0) return out;
  for (size_t i = used_; i < used_ + asked; ++i) {
    headers_[i].msg_hdr.msg_controllen = sizeof control_[i].bytes;
  }
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
  for (const size_t end = used_ + out.taken; used_ < end; ++used_) hold(used_, counters);
  return out;
}

void ReceiveBatch::hold(size_t slot, UdpCounters& counters) {
  mmsghdr& h = headers_[slot];
  const Aside aside = read_aside(h.msg_hdr);
  const uint32_t bytes = h.msg_len;
  const uint32_t cut = aside.cut == 0 ? bytes : std::min(aside.cut, bytes);
  const uint32_t pieces = cut == 0 ? 1 : (bytes + cut - 1) / cut;
  // Without what came beside it nobody knows where to cut it.
  if ((h.msg_hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || cut > datagram_bytes_) {
    counters.truncated += pieces;
    return;
  }
  held_[held_count_++] = {static_cast<const std::byte*>(room_[slot].iov_base), bytes, cut, pieces,
                          aside.marked};
  held_bytes_ += bytes;
  waiting_ += pieces;
  usual_train_ = pieces;
  counters.received += pieces;
  counters.received_bytes += bytes;
  counters.received_trains += pieces > 1;
}

// Fills datagrams_ with the next of what waits; returns how many.
size_t ReceiveBatch::cut(size_t limit) {
  size_t count = 0;
  limit = std::min(limit, kShown);
  for (; first_ < held_count_ && count < limit; ++first_) {
    Held& train = held_[first_];
    for (; train.pieces != 0 && count < limit; --train.pieces) {
      Datagram& d = datagrams_[count++];
      d = Datagram{};
      d.bytes = train.at;
      d.size = std::min(train.cut, train.bytes);
      d.congestion_marked = train.marked;
      train.at += d.size;
      train.bytes -= d.size;
    }
    if (train.pieces != 0) break;
  }
  waiting_ -= count;
  return count;
}

size_t ReceiveBatch::deliver(FabricSink& sink, Memory& memory, size_t budget) {
  size_t delivered = 0;
  while (delivered < budget && waiting_ != 0) {
    const size_t count = cut(budget - delivered);
    const std::span<Datagram> batch(datagrams_.data(), count);
    sink.receive(batch);
    size_t placed = 0;
    for (const Datagram& d : batch) {
      if (!d.destination || d.header_bytes >= d.size) continue;
      placements_[placed++] = {d.destination, d.bytes + d.header_bytes, d.size - d.header_bytes};
    }
    if (placed != 0) memory.place(placements_.data(), placed);
    sink.arrived(batch);
    delivered += count;
  }
  if (waiting_ == 0) used_ = first_ = held_count_ = held_bytes_ = 0;
  return delivered;
}

}  // namespace weft::udp
