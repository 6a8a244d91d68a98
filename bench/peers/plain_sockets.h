// SPDX-License-Identifier: Apache-2.0
//
// What the small programs of this folder share: their arguments and plain sockets. Failing ends the
// program with a word and an exit code of tools/common/exit_codes.h. One thread a process.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "tools/common/exit_codes.h"

namespace weft::peers {

using Clock = std::chrono::steady_clock;

constexpr int kSocketBufferBytes = 16 << 20;
constexpr size_t kMaxDatagram = 65507;

struct Arguments {
  sockaddr_in at{};
  size_t payload = 1472, bytes = 8;
  double seconds = 1, timeout = 30;
  bool tcp = false;
};

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "peer: %s: %s\n", what, std::strerror(errno));
  std::exit(tools::kFailed);
}

[[noreturn]] inline void time_out() {
  std::fprintf(stderr, "peer: out of time\n");
  std::exit(tools::kTimedOut);
}

inline Clock::time_point in(double seconds) {
  return Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

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

inline bool parse_address(const std::string& text, sockaddr_in& at) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(std::atoi(text.c_str() + colon + 1)));
  return at.sin_port != 0 && ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &at.sin_addr) == 1;
}

inline bool parse(int argc, char** argv, Arguments& a) {
  bool have_address = false;
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--tcp") {
      a.tcp = true;
      continue;
    }
    if (++i == argc) return false;
    const double value = std::atof(argv[i]);
    if (name == "--at")
      have_address = parse_address(argv[i], a.at);
    else if (name == "--payload")
      a.payload = static_cast<size_t>(std::max(0.0, value));
    else if (name == "--bytes")
      a.bytes = static_cast<size_t>(std::max(0.0, value));
    else if (name == "--seconds")
      a.seconds = value;
    else if (name == "--timeout")
      a.timeout = value;
    else
      return false;
  }
  return have_address && a.payload >= 2 && a.payload <= kMaxDatagram && a.bytes >= 1 &&
         a.bytes <= kMaxDatagram && a.seconds > 0 && a.timeout > 0;
}

}  // namespace weft::peers
