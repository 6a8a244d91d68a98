// SPDX-License-Identifier: Apache-2.0
// The list of fabrics under test.
#include "tests/fabric/world.h"

#include <algorithm>
#include <iterator>

#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"

namespace weft::contract {

namespace {

bool host_has_ipv6() {
  const FileDescriptor s(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress name(IpAddress::v6_loopback(), 0);
  return s && ::bind(s.get(), name.get(), name.size()) == 0;
}

std::vector<WorldKind> list() {
  std::vector<WorldKind> all = {
      // name, make, places, ordered, wakes, exposed
      {"udp", make_udp, false, false, true, true},
      {"udp_uneven", make_udp_uneven, false, false, true, true},
      {"udp_large", make_udp_large, false, false, true, true},
      {"udp_no_gso", make_udp_no_gso, false, false, true, true},
      {"udp_no_gro", make_udp_no_gro, false, false, true, true},
      {"udp_plain", make_udp_plain, false, false, true, true},
      {"sim_datagram", make_sim_datagram, false, false, false, false},
      {"sim_placing", make_sim_placing, true, true, false, false},
      {"sim_reliable", make_sim_reliable, true, true, false, false},
  };
  if (host_has_ipv6()) {
    all.push_back({"udp_ipv6", make_udp_ipv6, false, false, true, true});
    all.push_back({"udp_ipv6_plain", make_udp_ipv6_plain, false, false, true, true});
  }
  return all;
}

}  // namespace

const std::vector<WorldKind>& kinds() {
  static const std::vector<WorldKind> all = list();
  return all;
}

std::vector<WorldKind> kinds_that(bool (*are)(const WorldKind&)) {
  std::vector<WorldKind> out;
  std::copy_if(kinds().begin(), kinds().end(), std::back_inserter(out), are);
  return out;
}

}  // namespace weft::contract
