// SPDX-License-Identifier: Apache-2.0
// Plain sockets for tests that look at the UDP fabric's parts from outside. Each helper throws on
// what cannot go wrong on a working host.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"

namespace weft::udp::testing {

using Bytes = std::vector<std::byte>;

// On loopback, non-blocking, at a port of its own.
inline FileDescriptor udp_socket(SocketAddress* name,
                                 const IpAddress& address = IpAddress::v4(127, 0, 0, 1)) {
  FileDescriptor s(::socket(family_of(address), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  *name = SocketAddress(address, 0);
  if (!s || ::bind(s.get(), name->get(), name->size()) != 0 ||
      ::getsockname(s.get(), name->out(), name->length()) != 0) {
    throw std::runtime_error("no UDP socket on " + address.text());
  }
  return s;
}

inline bool host_has_ipv6() {
  const FileDescriptor s(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress name(IpAddress::v6_loopback(), 0);
  return s && ::bind(s.get(), name.get(), name.size()) == 0;
}

inline bool set_udp_option(int socket, int option, int value) {
  return ::setsockopt(socket, IPPROTO_UDP, option, &value, sizeof value) == 0;
}
// A train of 0 turns nothing on, and is refused where trains are not known.
inline bool kernel_sends_trains(int socket) { return set_udp_option(socket, UDP_SEGMENT, 0); }
inline bool receive_trains(int socket) { return set_udp_option(socket, UDP_GRO, 1); }

inline void send_to(int socket, const Bytes& bytes, const SocketAddress& to) {
  const ssize_t sent = ::sendto(socket, bytes.data(), bytes.size(), 0, to.get(), to.size());
  if (sent != static_cast<ssize_t>(bytes.size())) throw std::runtime_error("sendto failed");
}

// Everything that waits in a socket, a datagram an element; and from which ports, if asked.
inline std::vector<Bytes> drain(int socket, std::vector<uint16_t>* ports = nullptr) {
  std::vector<Bytes> out;
  Bytes room(65536);
  for (;;) {
    SocketAddress from;
    const ssize_t got =
        ::recvfrom(socket, room.data(), room.size(), MSG_DONTWAIT, from.out(), from.length());
    if (got < 0) return out;
    out.emplace_back(room.begin(), room.begin() + got);
    if (ports) ports->push_back(from.port());
  }
}

}  // namespace weft::udp::testing
