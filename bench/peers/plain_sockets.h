// SPDX-License-Identifier: Apache-2.0
//
// The plain sockets of the small programs in this folder. A call that fails ends the program with
// words (program.h). Ownership: descriptors live as long as the program. One thread a process.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "bench/peers/program.h"

namespace weft::peers {

constexpr int kSocketBufferBytes = 16 << 20;

inline void option(int fd, int level, int name, int value, const char* what) {
  if (::setsockopt(fd, level, name, &value, sizeof value) != 0) fail(what);
}

inline int udp_socket() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  for (const auto& [forced, plain] :
       {std::pair{SO_RCVBUFFORCE, SO_RCVBUF}, std::pair{SO_SNDBUFFORCE, SO_SNDBUF}}) {
    const int size = kSocketBufferBytes;
    if (::setsockopt(fd, SOL_SOCKET, forced, &size, sizeof size) != 0) {
      ::setsockopt(fd, SOL_SOCKET, plain, &size, sizeof size);  // as much as an ordinary user gets
    }
  }
  return fd;
}

inline void bind_to(int fd, const sockaddr_in& at) {
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fail("bind");
}

inline void connect_to(int fd, const sockaddr_in& at) {
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fail("connect");
}

inline bool again() { return errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED; }

}  // namespace weft::peers
