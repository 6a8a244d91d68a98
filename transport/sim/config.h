// SPDX-License-Identifier: Apache-2.0
// What a simulated network is like and what goes wrong in it, as plain data.
//
// A probability is in [0, 1] and is drawn for each packet by itself unless its comment says
// otherwise. Everything here is fixed when the network is made: together with the seed and the
// calls made it decides every event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/base/units.h"

namespace weft::sim {

enum class Mode : uint8_t {
  kDatagram,  // a post is a datagram, copied when it is posted
  kPlacing,   // a post is a write of up to 64 KB, read later and put into the peer's memory
};

struct SimFaults {
  // Datagrams and, in datagram mode, control.
  double loss = 0;       // also of a write, as a whole, where the fabric is not reliable
  double duplicate = 0;  // a second copy arrives; never of a write
  Duration duplicate_by = microseconds(200);  // that copy is at most so much later
  double reorder = 0;                         // takes an extra delay, so that others overtake
  Duration reorder_by = microseconds(100);    // at most
  double mark = 0;                            // a datagram carries a congestion mark

  // Control in placing mode; the bounds in time are those above.
  double control_loss = 0;
  double control_duplicate = 0;
  double control_reorder = 0;

  // Writes.
  double late = 0;                       // lands late
  Duration late_by = microseconds(400);  // at most; on an ordered path no more than twice its delay
  bool partial_writes = false;           // a lost write has written a prefix of itself
  double break_path = 0;                 // reliable only: this write breaks its path, at both ends

  // The local NIC.
  double refuse = 0;  // a post call takes a random part of its batch, perhaps none
  Duration kill_within = microseconds(100);  // a kill is carried out after at most this
};

// Nothing gets through in [from, until); a reliable write waits for it to end, up to retry_timeout.
struct Blackhole {
  int path = -1;       // -1: every path
  int from_host = -1;  // what this host sends; -1: both directions
  Time from;
  Time until = Time::never();
};

// From `at` on the path takes another way through the network: another delay, and no order between
// what was posted before and what is posted after, not even on an ordered path.
struct Rehash {
  int path = 0;
  Time at;
  Duration delay;
};

// The host does nothing in [from, until): its poll finds nothing; the harness does not drive it.
struct Pause {
  int host = 0;
  Time from;
  Time until;
};

struct SimConfig {
  Mode mode = Mode::kDatagram;
  int paths = 8;                   // of a link, 1 to kMaxPaths
  uint32_t max_segment_bytes = 0;  // a multiple of 128; 0: 1408 for datagrams, 65536 for writes
  bool ordered_path = true;        // placing mode
  bool reliable = false;           // placing mode; implies that order is kept
  uint32_t speed_mbps = 0;         // what the port claims; nothing is slowed down by it

  Duration delay = microseconds(20);     // one way
  Duration path_skew = {0};              // path p takes p times this longer
  Duration jitter = microseconds(2);     // added: uniform in [0, jitter]
  Duration nic_delay = microseconds(5);  // between post and departure: uniform in [0, nic_delay]
  Duration retry_timeout = milliseconds(2);  // reliable: so long in a blackhole breaks the path

  size_t max_in_flight = 32768;     // packets that the network holds, at most kMaxPackets
  size_t max_posts_per_call = 0;    // a post call takes no more; 0: no such limit
  size_t receive_datagrams = 8192;  // that a host holds for poll; more are lost, as in a socket
  // Landings that a path holds for poll; one more is lost, as on a queue pair without a posted
  // receive. 0: no limit.
  size_t receive_depth = 0;
  SimFaults faults;
  std::vector<Blackhole> blackholes;
  std::vector<Rehash> rehashes;
  std::vector<Pause> pauses;
};

inline constexpr size_t kMaxPackets = 65536;

// What has happened so far. The harness asserts that violations is 0.
struct SimCounters {
  uint64_t posted = 0;          // data posts taken
  uint64_t control_posted = 0;  // control posts taken
  uint64_t arrived = 0;         // datagrams and writes that reached the other host whole
  uint64_t lost = 0;            // packets that the network lost, whatever the reason
  uint64_t duplicated = 0;
  uint64_t late = 0;
  uint64_t killed = 0;    // writes discarded because their epoch was not open where they arrived
  uint64_t flushed = 0;   // posts that never left: their epoch was killed or broken at the poster
  uint64_t broken = 0;    // paths that broke
  uint64_t overruns = 0;  // lost because receive_datagrams or receive_depth was exceeded
  // Breaches of the contract: bad keys or ranges, posts that make no sense.
  uint64_t violations = 0;
};

}  // namespace weft::sim
