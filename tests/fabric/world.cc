// SPDX-License-Identifier: Apache-2.0
// The list of fabrics under test.
#include "tests/fabric/world.h"

#include <algorithm>
#include <iterator>

namespace weft::contract {

const std::vector<WorldKind>& kinds() {
  static const std::vector<WorldKind> all = {
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
  return all;
}

std::vector<WorldKind> kinds_that(bool (*are)(const WorldKind&)) {
  std::vector<WorldKind> out;
  std::copy_if(kinds().begin(), kinds().end(), std::back_inserter(out), are);
  return out;
}

}  // namespace weft::contract
