// SPDX-License-Identifier: Apache-2.0
// When to dial a peer once more, and from how many ports: a race that the first stream wins.
//
// A network of several ways chooses one by a hash of the ports, the other way back by its own, so a
// stream needs a way that lives there and one that lives back: with three spines of four dead one
// dial in sixteen. TCP repeats its first packet from the same port, hence on the same way. So one
// dial is made at once, which is the rule and takes a round trip; as long as none is answered
// others follow in waves that grow. With one dial in sixteen that can succeed, none of 60 by 170 ms
// has in 2 cases of 100, of 124 by 380 ms in 3 of 10,000, and of 284 by 1.7 s in one of a hundred
// million.
//
// At most kMostOpen are open at a time: in a later wave the oldest give way, but never the first,
// which stays for a peer that is far away or whose answer was lost by chance.
//
// Pure: no clock, no socket. Ownership: none. Nothing fails; who gives up is the caller.
#pragma once

#include <cstddef>

#include "transport/base/units.h"

namespace weft {

class DialRace {
 public:
  static constexpr size_t kMostOpen = 64;
  static constexpr size_t kLargestWave = kMostOpen / 2;

  // A race from the beginning: the first wave is due now.
  void begin(Time now);
  void end() { next_ = Time::never(); }
  bool running() const { return next_ != Time::never(); }

  // How many dials are to be made now; they count as made.
  size_t due(Time now);
  // When due() has something to say again; never when no race is running.
  Time next() const { return next_; }

 private:
  size_t wave_ = 0;
  Time next_ = Time::never();
};

}  // namespace weft
