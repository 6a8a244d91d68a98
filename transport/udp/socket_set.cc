// SPDX-License-Identifier: Apache-2.0
// Opening and binding the sockets that are the paths, and finding out which of them have input.
#include "transport/udp/socket_set.h"

#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "transport/system/socket_address.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace weft::udp {
namespace {

constexpr uint32_t kAlarm = UINT32_MAX;  // epoll's word for what is no socket
// "A router may mark this instead of dropping it": ECT(0), in the low bits of what was once TOS.
constexpr int kEcnCapable = 2;

bool set_option(int socket, int level, int name, int value) {
  return ::setsockopt(socket, level, name, &value, sizeof value) == 0;
}

// What setting a feature came to: whether it is on, or why that is an error.
Result<bool> settle(UdpFeature wanted, bool there, const char* name, const std::string& what) {
  if (wanted != UdpFeature::kOn || there) return there;
  return Status(Code::kUnavailable, std::string(name) +
                                        " was asked for, and this kernel refuses it to " + what +
                                        ": " + std::strerror(errno));
}

Status system_error(const std::string& tried, int error) {
  std::string words = tried + ": " + std::strerror(error);
  if (error == EMFILE || error == ENFILE) words += "; raise the limit of open files (ulimit -n)";
  if (error == EADDRNOTAVAIL) words += "; it is not an address of this host";
  return Status(Code::kSystem, std::move(words));
}

// Past the system's limit where we may, up to it where we may not: a smaller buffer is not an
// error, it only drops sooner.
void set_buffer(int socket, int force, int plain, uint32_t bytes) {
  const int wanted = static_cast<int>(std::min<uint32_t>(bytes, 1u << 30));
  if (wanted == 0) return;
  if (::setsockopt(socket, SOL_SOCKET, force, &wanted, sizeof wanted) == 0) return;
  (void)::setsockopt(socket, SOL_SOCKET, plain, &wanted, sizeof wanted);
}

}  // namespace

Result<SocketSet> SocketSet::open(const UdpConfig& config) {
  SocketSet set;
  set.epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!set.epoll_) return system_error("opening an epoll descriptor", errno);
  const auto count = static_cast<size_t>(config.sockets);
  set.sockets_.reserve(count);
  set.ports_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (Status bad = set.add(config); !bad) return bad;
  }
  set.events_.resize(count);
  set.turns_.resize(count);
  set.queued_.resize(count);
  if (set.receives_trains_) {
    if (Status bad = set.add_alarm(); !bad) return bad;
  }
  return set;
}

Status SocketSet::add(const UdpConfig& config) {
  const std::string what = "UDP socket " + std::to_string(sockets_.size() + 1) + " of " +
                           std::to_string(config.sockets) + " on " + config.address.text();
  FileDescriptor s(
      ::socket(family_of(config.address), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!s) return system_error("opening " + what, errno);

  if (Status bad = set_options(s.get(), config, what); !bad) return bad;

  SocketAddress name(config.address, 0);
  if (::bind(s.get(), name.get(), name.size()) != 0) return system_error("binding " + what, errno);
  if (::getsockname(s.get(), name.out(), name.length()) != 0) {
    return system_error("asking the port of " + what, errno);
  }

  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<uint32_t>(sockets_.size());
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, s.get(), &event) != 0) {
    return system_error("watching " + what, errno);
  }
  ports_.push_back(name.port());
  sockets_.push_back(std::move(s));
  return Status();
}

Status SocketSet::set_options(int socket, const UdpConfig& config, const std::string& what) {
  // Never fragment: one lost fragment loses all. PROBE and not DO, since DO believes an ICMP "too
  // big" that anybody can forge, and would then refuse segments for minutes.
  const bool ipv6 = config.address.ipv6;
  const bool whole = ipv6 ? set_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE)
                          : set_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (!whole) {
    return system_error("forbidding fragments on " + what, errno);
  }
  set_buffer(socket, SO_RCVBUFFORCE, SO_RCVBUF, config.receive_buffer_bytes);
  set_buffer(socket, SO_SNDBUFFORCE, SO_SNDBUF, config.send_buffer_bytes);

  // Every socket is asked, the first one decides: one that differed would be served all the same.
  // A size of 0 turns nothing on, and is refused where UDP_SEGMENT is not known.
  const bool gso =
      config.gso != UdpFeature::kOff && set_option(socket, IPPROTO_UDP, UDP_SEGMENT, 0);
  const Result<bool> sends = settle(config.gso, gso, "sending in trains (UDP_SEGMENT)", what);
  if (!sends) return sends.status();
  const bool gro = config.gro != UdpFeature::kOff && set_option(socket, IPPROTO_UDP, UDP_GRO, 1);
  const Result<bool> receives = settle(config.gro, gro, "receiving in trains (UDP_GRO)", what);
  if (!receives) return receives.status();
  // Both or neither: who cannot see marks must not ask for them.
  const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
  const bool ecn = config.ecn &&
                   set_option(socket, level, ipv6 ? IPV6_RECVTCLASS : IP_RECVTOS, 1) &&
                   set_option(socket, level, ipv6 ? IPV6_TCLASS : IP_TOS, kEcnCapable);
  if (sockets_.empty()) sends_trains_ = *sends, receives_trains_ = *receives, sees_marks_ = true;
  sees_marks_ = sees_marks_ && ecn;
  return Status();
}

Status SocketSet::add_alarm() {
  alarm_.reset(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!alarm_) return system_error("opening an eventfd for UDP", errno);
  epoll_event event{};
  event.data.u32 = kAlarm;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, alarm_.get(), &event) != 0) {
    return system_error("watching an eventfd for UDP", errno);
  }
  return Status();
}

void SocketSet::keep_awake(bool awake) {
  if (awake == awake_ || !alarm_) return;
  epoll_event event{};
  event.events = awake ? EPOLLIN : 0u;
  event.data.u32 = kAlarm;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, alarm_.get(), &event) == 0) awake_ = awake;
}

void SocketSet::find_readable() {
  const int found = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
  for (int i = 0; i < found; ++i) {
    const uint32_t member = events_[static_cast<size_t>(i)].data.u32;
    if (member == kAlarm) continue;
    const int socket = static_cast<int>(member);
    if (!queued_[static_cast<size_t>(socket)]) again(socket);
  }
}

int SocketSet::next() {
  if (waiting_ == 0) return -1;
  const uint16_t socket = turns_[first_];
  first_ = first_ + 1 == turns_.size() ? 0 : first_ + 1;
  --waiting_;
  queued_[socket] = 0;
  return socket;
}

void SocketSet::again(int socket) {
  size_t at = first_ + waiting_;
  if (at >= turns_.size()) at -= turns_.size();
  turns_[at] = static_cast<uint16_t>(socket);
  queued_[static_cast<size_t>(socket)] = 1;
  ++waiting_;
}

uint64_t SocketSet::kernel_drops() const {
  uint64_t sum = 0;
  for (const FileDescriptor& s : sockets_) {
    uint32_t memory[SK_MEMINFO_VARS] = {};
    socklen_t length = sizeof memory;
    if (::getsockopt(s.get(), SOL_SOCKET, SO_MEMINFO, memory, &length) == 0) {
      sum += memory[SK_MEMINFO_DROPS];
    }
  }
  return sum;
}

uint32_t SocketSet::receive_buffer_bytes() const {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  if (sockets_.empty() ||
      ::getsockopt(sockets_[0].get(), SOL_SOCKET, SO_RCVBUF, &bytes, &length) != 0) {
    return 0;
  }
  return static_cast<uint32_t>(bytes);
}

}  // namespace weft::udp
