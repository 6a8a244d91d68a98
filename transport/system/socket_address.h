// SPDX-License-Identifier: Apache-2.0
// An IpAddress and a port in the shape that the kernel wants, and back.
//
// Both families fit one object, which is its own storage: what get() points to lives as long as it
// does. For the kernel to write into: out() and length(). Plain value; nothing fails.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "transport/base/ip_address.h"

namespace weft {

class SocketAddress {
 public:
  // For the kernel to fill in.
  SocketAddress() : length_(sizeof in_) {}
  SocketAddress(const IpAddress& address, uint16_t port) {
    if (address.ipv6) {
      in_.v6 = {};
      in_.v6.sin6_family = AF_INET6;
      in_.v6.sin6_port = htons(port);
      in_.v6.sin6_scope_id = address.scope;
      std::copy_n(address.bytes.begin(), 16, in_.v6.sin6_addr.s6_addr);
      length_ = sizeof in_.v6;
    } else {
      in_.v4 = {};
      in_.v4.sin_family = AF_INET;
      in_.v4.sin_port = htons(port);
      std::memcpy(&in_.v4.sin_addr, address.bytes.data(), sizeof in_.v4.sin_addr);
      length_ = sizeof in_.v4;
    }
  }

  const sockaddr* get() const { return &in_.any; }
  socklen_t size() const { return length_; }
  sockaddr* out() { return &in_.any; }
  socklen_t* length() { return &length_; }

  IpAddress address() const {
    IpAddress out;
    out.ipv6 = in_.any.sa_family == AF_INET6;
    if (out.ipv6) {
      std::copy_n(in_.v6.sin6_addr.s6_addr, 16, out.bytes.begin());
      out.scope = in_.v6.sin6_scope_id;
    } else {
      std::memcpy(out.bytes.data(), &in_.v4.sin_addr, sizeof in_.v4.sin_addr);
    }
    return out;
  }
  uint16_t port() const {
    return ntohs(in_.any.sa_family == AF_INET6 ? in_.v6.sin6_port : in_.v4.sin_port);
  }

 private:
  // Members begin with the family, which may be read through any of them.
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } in_{};
  socklen_t length_;
};

// AF_INET or AF_INET6.
inline int family_of(const IpAddress& address) { return address.ipv6 ? AF_INET6 : AF_INET; }

}  // namespace weft
