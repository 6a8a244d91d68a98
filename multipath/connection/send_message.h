// SPDX-License-Identifier: Apache-2.0
// One matched send on its way: what of it was sent, what has arrived, what must go again.
//
// Segments are numbered from 0; all but the last carry segment_bytes. At most kSegmentWindow of
// them lie between the first that is not acked and the last that was sent. The message lives in the
// sender's pool until it is acked (or failed), none of its copies is unsettled and no post can read
// its source; its place in the pool is also its slot and generation in immediate data, which is why
// they are not reused earlier.
#pragma once

#include <cstdint>

#include "multipath/connection/types.h"
#include "transport/base/bit_window.h"
#include "transport/base/intrusive_list.h"
#include "transport/base/pool.h"
#include "transport/wire/immediate.h"

namespace weft {

struct SendFlowState;

struct ReadyHook : Hook {};    // has segments that may go now
struct TouchedHook : Hook {};  // something about it changed; look at it once the batch is done
struct RecordHook : Hook {};   // a record is due
struct QueryHook : Hook {};    // the receiver is to say what it has
struct DoneHook : Hook {};     // complete, to be reported

struct SendMessage : ReadyHook, TouchedHook, RecordHook, QueryHook, DoneHook {
  uint32_t pool_index = 0;
  uint32_t pool_generation = 0;

  SendFlowState* flow = nullptr;  // null once the flow is gone
  uint32_t number = 0;
  uint8_t part = 0;
  Token token = 0;
  RegionId region = 0;

  const std::byte* source = nullptr;
  uint64_t bytes = 0;
  uint32_t local_key = 0;
  uint64_t remote_address = 0;
  uint64_t remote_key = 0;

  uint32_t segment_bytes = 0;
  uint32_t segments = 0;
  uint32_t window = kSegmentWindow;  // of segments outstanding
  bool urgent = false;               // goes before all that is not
  uint32_t next = 0;                 // the first that was never sent
  BitWindow<kSegmentWindow> acked;
  BitWindow<kSegmentWindow> repair;  // dead and not yet sent again; its base is acked's
  uint32_t repairs = 0;              // bits in `repair`
  uint32_t unsettled = 0;            // copies whose fate is open
  uint32_t sources = 0;              // posts that may still read the source
  uint64_t state_stamp = 0;          // the youngest report of this very message
  Time query_after{};                // no query before
  bool recorded = true;              // the receiver can tell what its long immediates mean
  bool finished = false;             // acked or failed: nothing more is sent

  uint64_t length(uint32_t segment) const {
    const uint64_t offset = uint64_t{segment} * segment_bytes;
    return bytes - offset < segment_bytes ? bytes - offset : segment_bytes;
  }
  bool is_short() const { return segments == 1; }
  bool all_acked() const { return acked.base() == segments; }

  // Until the receiver is known to have the record, no more than its early window (64) may be out.
  bool sendable() const {
    if (finished) return false;
    if (repairs > 0) return true;
    return next < segments && next - acked.base() < (recorded ? window : 64);
  }

  // Returns whether that was news.
  bool mark_acked(uint32_t segment) {
    if (segment >= next || !acked.set(segment)) return false;
    if (repair.holds(segment)) {
      repair.clear(segment);
      --repairs;
    }
    acked.slide();
    repair.advance(acked.base());
    return true;
  }

  void mark_for_repair(uint32_t segment) {
    if (!acked.test(segment) && repair.set(segment)) ++repairs;
  }

  // The next segment to send, repairs first. Precondition: sendable().
  uint32_t take(bool* is_repair) {
    *is_repair = repairs > 0;
    if (!*is_repair) return next++;
    const auto segment = static_cast<uint32_t>(repair.first());
    repair.clear(segment);
    --repairs;
    return segment;
  }
};

// As many as immediate data has slots.
using SendMessagePool = Pool<SendMessage, wire::kImmediateSlots>;

}  // namespace weft
