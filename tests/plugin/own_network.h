// SPDX-License-Identifier: Apache-2.0
// A network namespace for this process alone, with nothing but loopback in it. Needs root; a role
// of a program (peer.h) enters it, since there is no way back.
#pragma once

namespace weft::plugin_test {

// False, and nothing has changed that matters, where the kernel does not allow it.
bool own_network();
// Of the UDP packets (whole trains, where the kernel carries them) of this namespace so many
// percent vanish from now on. False where there is no nftables.
bool lose_udp(int percent);

}  // namespace weft::plugin_test
