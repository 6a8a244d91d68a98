// SPDX-License-Identifier: Apache-2.0
// See own_network.h.
#include "tests/plugin/own_network.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace weft::plugin_test {

bool own_network() {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  const bool up = ::ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;
  ::close(fd);
  return up;
}

bool lose_udp(int percent) {
  const std::string rules =
      "nft 'table ip weft { chain loss { type filter hook input priority 0; "
      "meta l4proto udp numgen random mod 100 < " +
      std::to_string(percent) + " drop; }; }' >/dev/null 2>&1";
  return std::system(rules.c_str()) == 0;
}

}  // namespace weft::plugin_test
