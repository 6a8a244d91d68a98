// SPDX-License-Identifier: Apache-2.0
// Sending, returning and reading size probes.
#include "multipath/endpoint/path_probe.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/base/post.h"

namespace weft {
namespace {

constexpr size_t kRoom = 65536;

bool set_option(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
}

}  // namespace

Status PathProbe::open(const IpAddress& own) {
  own_ = own;
  const auto failed = [&](const char* what) {
    socket_.reset();
    return Status(Code::kSystem, std::string(what) + " on " + own.text() + ": " + strerror(errno));
  };
  socket_.reset(::socket(family_of(own), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_) return failed("no UDP socket");
  const bool whole =
      own.ipv6 ? set_option(socket_.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE)
               : set_option(socket_.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (!whole) return failed("cannot forbid fragments");
  SocketAddress at(own, 0);
  if (::bind(socket_.get(), at.get(), at.size()) != 0) return failed("cannot bind a UDP socket");
  if (::getsockname(socket_.get(), at.out(), at.length()) != 0) {
    return failed("cannot learn which UDP port it is");
  }
  port_ = at.port();
  room_.resize(kRoom);
  return {};
}

void PathProbe::send_to(const SocketAddress& to, const wire::SizeProbe& probe, uint32_t segment) {
  const size_t bytes = std::min<size_t>(segment + kMaxSegmentHeader, room_.size());
  std::fill_n(room_.begin(), bytes, std::byte{0});
  wire::encode_size_probe(room_, probe);
  // Too long for our own interface, or nobody there: it does not come back, like any other.
  (void)::sendto(socket_.get(), room_.data(), bytes, MSG_NOSIGNAL, to.get(), to.size());
}

void PathProbe::send(const IpAddress& to, uint16_t port, const wire::Cookie& cookie, uint64_t nonce,
                     uint32_t segment) {
  IpAddress target = to;
  if (target.link_local()) target.scope = own_.scope;
  const auto bytes = static_cast<uint32_t>(segment + kMaxSegmentHeader);
  send_to(SocketAddress(target, port), {false, cookie, nonce, bytes}, segment);
}

void PathProbe::give_back(const Arrival& arrival) {
  wire::SizeProbe probe = arrival.probe;
  probe.back = true;
  send_to(arrival.from, probe, arrival.segment);
}

bool PathProbe::next(Arrival* arrival, int* patience) {
  while (socket_ && (*patience)-- > 0) {
    arrival->from = SocketAddress();
    const ssize_t got = ::recvfrom(socket_.get(), room_.data(), room_.size(), MSG_DONTWAIT,
                                   arrival->from.out(), arrival->from.length());
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got < 0) continue;  // news about what was sent earlier
    const auto bytes = static_cast<size_t>(got);
    if (!wire::decode_size_probe(std::span(room_).first(bytes), &arrival->probe)) continue;
    if (bytes <= kMaxSegmentHeader) continue;
    arrival->segment = static_cast<uint32_t>(bytes - kMaxSegmentHeader);
    return true;
  }
  return false;
}

}  // namespace weft
