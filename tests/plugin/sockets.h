// SPDX-License-Identifier: Apache-2.0
// Which ports a process of this network namespace can be reached at, as the kernel lists them.
#pragma once

#include <sys/types.h>

#include <set>

namespace weft::plugin_test {

std::set<int> udp_ports(pid_t pid);
std::set<int> tcp_listening_ports(pid_t pid);

}  // namespace weft::plugin_test
