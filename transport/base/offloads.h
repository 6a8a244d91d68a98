// SPDX-License-Identifier: Apache-2.0
// What a fabric says its NIC does by itself. The connection supplies what is missing, by rules
// written over these flags and never over the name of a fabric.
#pragma once

namespace weft {

struct Offloads {
  bool places =
      false;  // writes payload into user memory; announces it with 32 bits of immediate data
  bool reliable = false;      // retransmits by itself; a lost write is one whose path broke
  bool ordered_path = false;  // what one path carries arrives in the order in which it was posted
  bool timestamps = false;    // arrivals and completions carry the NIC's own time
  bool ecn = false;           // congestion marks are visible to the receiver
};

}  // namespace weft
