// SPDX-License-Identifier: Apache-2.0
// What a process holds: the ports at which it can be reached, as the kernel lists them for this
// network namespace, and of this process descriptors and bytes of heap (of all libraries together).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <set>

namespace weft::plugin_test {

std::set<int> udp_ports(pid_t pid);
std::set<int> tcp_listening_ports(pid_t pid);

int open_descriptors();
size_t heap_bytes();

}  // namespace weft::plugin_test
