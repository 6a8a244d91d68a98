// SPDX-License-Identifier: Apache-2.0
// Everything that the sending side of a connection knows about one path.
//
// A path is *usable* when new segments may go out on it. Time-outs without any arrival make it
// dead; a dead path is probed after 1 ms, then ever more rarely up to 100 ms, and any arrival
// brings it back. On placing fabrics a dead path is killed: both ends end its queue pair (`epoch`)
// and confirm, and a new epoch begins.
#pragma once

#include <cstdint>

#include "multipath/path/copy_ring.h"
#include "multipath/path/rtt.h"
#include "transport/base/post.h"
#include "transport/base/units.h"

namespace weft {

// What a path carried, for people and tests.
struct PathCounters {
  uint64_t bytes = 0;          // payload, first copies and repairs
  uint64_t packets = 0;        // segments posted
  uint64_t retransmitted = 0;  // segments posted again
  uint64_t probes = 0;
};

struct Path {
  PathIndex index = 0;
  CopyRing copies;
  RttEstimator rtt;
  PathCounters counters;

  // Datagram: the largest packet number acked. Placing: the youngest copy known to have arrived,
  // and the receiver's stamp of the report that said so.
  uint64_t largest_arrived = 0;
  uint64_t arrival_stamp = 0;
  // The largest probe that arrived: what was sent before it had a time-out's start.
  uint64_t probe_arrived = 0;
  Time arrived_at{INT64_MIN / 2};  // when an arrival was last reported
  Time asked_at{INT64_MIN / 2};    // when a probe was last wanted for the sake of control
  uint64_t lost_below = 0;  // no copy from this number on was taken for lost
  uint32_t marks = 0;       // congestion marks, as the receiver counts them

  bool ordered = true;  // until an older copy arrives behind a younger one: then never again
  bool dead = false;
  bool probe_wanted = false;
  int timeouts = 0;  // in a row, without any arrival
  int revivals_tried = 0;
  Time deadline = Time::never();

  // The kill handshake (placing fabrics).
  uint32_t epoch = 0;
  bool killing = false;
  bool kill_here_done = false;
  bool kill_there_done = false;
  uint64_t kill_stamp = 0;  // the peer's stamp when it confirmed
  bool tell_state = false;  // a PathState statement is due

  bool usable() const { return !dead && !killing && !copies.full(); }
};

}  // namespace weft
