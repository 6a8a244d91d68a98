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
  while (sockets_.size() < kHome) {
    const Status opened = open_socket();
    if (opened.ok()) continue;
    port_ = 0;
    sockets_.clear();
    return opened;
  }
  return {};
}

Status PathProbe::open_socket() {
  const auto failed = [&](const char* what) {
    return Status(Code::kSystem, std::string(what) + " on " + own_.text() + ": " + strerror(errno));
  };
  FileDescriptor socket(::socket(family_of(own_), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
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
  event.data.u64 = sockets_.size();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    return failed("cannot watch a UDP socket");
  }
  if (sockets_.empty()) port_ = at.port();
  sockets_.push_back(std::move(socket));
  return {};
}

void PathProbe::rest() {
  for (; sockets_.size() > kHome; sockets_.pop_back()) {
    // By hand: a forked child that holds the socket would keep it in the set.
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, sockets_.back().get(), nullptr);
  }
}

void PathProbe::send_to(const SocketAddress& to, const wire::SizeProbe& probe, uint32_t segment,
                        size_t which) {
  const size_t bytes = std::min<size_t>(segment + kMaxSegmentHeader, room_.size());
  std::fill_n(room_.begin(), bytes, std::byte{0});
  wire::encode_size_probe(room_, probe);
  // Too long for our own interface, or nobody there: it does not come back, like any other.
  (void)::sendto(sockets_[which].get(), room_.data(), bytes, MSG_NOSIGNAL, to.get(), to.size());
}

void PathProbe::send(const IpAddress& to, uint16_t port, const wire::Cookie& cookie,
                     uint64_t search, int way, uint32_t segment) {
  IpAddress target = to;
  if (target.link_local()) target.scope = own_.scope;
  // Each of the first kMost ways has a port of its own; then they differ in who returns the probe.
  const auto number = static_cast<size_t>(way);
  const size_t back = (number / kMost + number) % kHome;
  size_t which = number % kMost;
  while (which >= sockets_.size() && open_socket().ok()) {
  }
  which %= sockets_.size();  // out of descriptors: fewer ways
  const uint64_t nonce = (search & ~kWayMask) | number * kHome | back;
  const auto bytes = static_cast<uint32_t>(segment + kMaxSegmentHeader);
  send_to(SocketAddress(target, port), {false, cookie, nonce, bytes}, segment, which);
}

void PathProbe::give_back(const Arrival& arrival) {
  wire::SizeProbe probe = arrival.probe;
  probe.back = true;
  send_to(arrival.from, probe, arrival.segment, probe.nonce % kHome);
}

bool PathProbe::next(Arrival* arrival, int* patience) {
  while (port_ != 0 && (*patience)-- > 0) {
    epoll_event event{};
    if (::epoll_wait(epoll_.get(), &event, 1, 0) != 1) return false;
    const uint64_t which = event.data.u64;
    if (which >= sockets_.size()) continue;
    arrival->from = SocketAddress();
    const ssize_t got = ::recvfrom(sockets_[which].get(), room_.data(), room_.size(), MSG_DONTWAIT,
                                   arrival->from.out(), arrival->from.length());
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
