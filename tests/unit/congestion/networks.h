// SPDX-License-Identifier: Apache-2.0
// The networks in which laws are tried: two quiet ones, and a virtual link that promises too much,
// without and with jitter.
#pragma once

#include <vector>

#include "tests/unit/congestion/bottleneck.h"

namespace weft {

struct Network {
  const char* name;
  BottleneckConfig config;
  Duration settle;  // some hundred round trips
};

inline BottleneckConfig network(double bytes_per_second, Duration base_rtt, uint32_t segment) {
  BottleneckConfig config;
  config.bytes_per_second = bytes_per_second;
  config.base_rtt = base_rtt;
  config.pipe.port_bytes_per_second = bytes_per_second;
  config.law = {4u << 20, segment};
  return config;
}

inline std::vector<Network> networks() {
  // A virtual link: it claims 10 Gbit/s and carries less, on machines that are noisy.
  BottleneckConfig virtual_link = network(1e8, microseconds(200), 1408);
  virtual_link.pipe.port_bytes_per_second = 1.25e9;
  virtual_link.pipe.noise_floor = microseconds(25);
  virtual_link.pipe.noise_ceiling = microseconds(250);
  virtual_link.pipe.longest_base = microseconds(200);
  BottleneckConfig noisy = virtual_link;
  noisy.jitter = microseconds(200);
  return {{"100 Gbit/s, 12 us", network(12.5e9, microseconds(12), 4096), milliseconds(10)},
          {"10 Gbit/s, 100 us", network(1.25e9, microseconds(100), 4096), milliseconds(60)},
          {"virtual link", virtual_link, milliseconds(300)},
          {"virtual link with jitter", noisy, milliseconds(300)}};
}

}  // namespace weft
