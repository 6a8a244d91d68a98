// SPDX-License-Identifier: Apache-2.0
// Sending, returning and reading size probes.
#include "multipath/endpoint/path_probe.h"

#include <sys/epoll.h>
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
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return {Code::kSystem, std::string("no epoll descriptor: ") + strerror(errno)};
  room_.resize(kRoom);
  for (size_t i = 0; i < kSockets; ++i) {
    const Status opened = open_socket(i);
    if (opened.ok()) continue;
    port_ = 0;
    for (FileDescriptor& socket : sockets_) socket.reset();
    return opened;
  }
  return {};
}

Status PathProbe::open_socket(size_t which) {
  const auto failed = [&](const char* what) {
    return Status(Code::kSystem, std::string(what) + " on " + own_.text() + ": " + strerror(errno));
  };
  FileDescriptor& socket = sockets_[which];
  socket.reset(::socket(family_of(own_), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return failed("no UDP socket");
  const bool whole =
      own_.ipv6 ? set_option(socket.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE)
                : set_option(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (!whole) return failed("cannot forbid fragments");
  SocketAddress at(own_, 0);
  if (::bind(socket.get(), at.get(), at.size()) != 0) return failed("cannot bind a UDP socket");
  if (::getsockname(socket.get(), at.out(), at.length()) != 0) {
    return failed("cannot learn which UDP port it is");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    return failed("cannot watch a UDP socket");
  }
  if (which == 0) port_ = at.port();
  return {};
}

void PathProbe::send_to(const SocketAddress& to, const wire::SizeProbe& probe, uint32_t segment,
                        size_t which) {
  const size_t bytes = std::min<size_t>(segment + kMaxSegmentHeader, room_.size());
  std::fill_n(room_.begin(), bytes, std::byte{0});
  wire::encode_size_probe(room_, probe);
  // Too long for our own interface, or nobody there: it does not come back, like any other.
  (void)::sendto(sockets_[which].get(), room_.data(), bytes, MSG_NOSIGNAL, to.get(), to.size());
}

void PathProbe::send(const IpAddress& to, uint16_t port, const wire::Cookie& cookie, uint64_t nonce,
                     uint32_t segment, int round) {
  IpAddress target = to;
  if (target.link_local()) target.scope = own_.scope;
  const auto bytes = static_cast<uint32_t>(segment + kMaxSegmentHeader);
  send_to(SocketAddress(target, port), {false, cookie, nonce, bytes}, segment,
          static_cast<size_t>(round) % kSockets);
}

void PathProbe::give_back(const Arrival& arrival) {
  wire::SizeProbe probe = arrival.probe;
  probe.back = true;
  send_to(arrival.from, probe, arrival.segment, 0);
}

bool PathProbe::next(Arrival* arrival, int* patience) {
  size_t which = 0;
  while (port_ != 0 && (*patience)-- > 0) {
    arrival->from = SocketAddress();
    const ssize_t got = ::recvfrom(sockets_[which].get(), room_.data(), room_.size(), MSG_DONTWAIT,
                                   arrival->from.out(), arrival->from.length());
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (++which == kSockets) return false;
      continue;
    }
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
