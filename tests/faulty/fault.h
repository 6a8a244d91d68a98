// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a plugin of this folder. All are the same correct TCP plugin; each .so is
// built with one fault, which strikes once (or from then on) at about the Nth message of a
// process, N from WEFT_FAULT_AT (default 8).
#pragma once

#include <cstdint>

namespace weft::faulty {

enum class Fault {
  kNone,          // libnccl-net-tcp.so: correct
  kCorrupt,       // flips a bit in the middle of a received message
  kDrop,          // does not send a message, but says that it was sent
  kReorder,       // puts two messages into each other's buffers
  kSize,          // reports 4 bytes less than arrived
  kSizeOverflow,  // test writes one size more than the request has
  kOverrun,       // writes a byte past the received size
  kEarly,         // reports a receive done before its data is there
  kStale,         // writes a piece of an earlier message over a newer one
  kSlot,          // puts the parts of a grouped receive into the wrong slots
  kLateRead,      // reports a send done, and reads its buffer afterwards
  kHang,          // test never reports done again
  kBlock,         // test never returns
  kCrash,         // a segmentation fault
  kError,         // test returns ncclSystemError
  kNoConnect,     // connect never gives a comm
  kLateWrite,     // closeRecv writes to the buffers of open receives, whose memory is deregistered
  kDeaf,          // no call ever says that the peer is gone
  kDeafSend,      // likewise isend only
  kWrongError,    // test calls a peer that is gone a ncclSystemError
  kStats,         // none: writes made-up statistics to the file that WEFT_STATS names
};

/// Which fault this .so has; defined in fault_choice.cc, compiled once for each.
extern const Fault kFault;

inline bool has(Fault fault) { return kFault == fault; }

/// Counts a message of this process.
void count_message();
/// True once enough messages were counted, until strike() was called.
bool armed();
void strike();

}  // namespace weft::faulty
