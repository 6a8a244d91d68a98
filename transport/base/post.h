// SPDX-License-Identifier: Apache-2.0
// What a connection asks a fabric to send, as plain data.
//
// The connection fills these without knowing which fabric is below: on a datagram fabric a segment
// carries its header in `header`; on a placing fabric it carries remote_address, remote_key and 32
// bits of immediate data instead. The engine fills `link`. Posts are values: nothing in them is
// owned, and the fabric reads `source` until it reports the post's cookie as completed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

// A fabric's name for its side of one connection: all paths between two endpoints.
using LinkId = uint32_t;
// Which path of a link; dense from 0.
using PathIndex = uint16_t;

inline constexpr size_t kMaxSegmentHeader = 64;  // and 1408 bytes of payload: 1472, UDP at MTU 1500
inline constexpr size_t kMaxControlBytes =
    1216;                              // fits an MTU of 1280, so control is never fragmented
inline constexpr int kMaxPaths = 256;  // of a link

struct SegmentPost {
  const std::byte* source = nullptr;  // null only when bytes == 0
  uint32_t bytes = 0;                 // payload; 0 for a probe and for an empty message
  LinkId link = 0;
  PathIndex path = 0;
  uint16_t header_bytes = 0;    // datagram fabrics
  uint32_t local_key = 0;       // of the source's registration
  uint32_t epoch = 0;           // placing fabrics: the path's queue pair, counted
  uint32_t immediate = 0;       // placing fabrics
  uint64_t remote_address = 0;  // placing fabrics
  uint64_t remote_key = 0;      // placing fabrics
  uint64_t cookie = 0;          // comes back when the source is no longer read
  std::array<std::byte, kMaxSegmentHeader> header;
};

struct ControlPost {
  LinkId link = 0;
  PathIndex path = 0;
  uint16_t bytes = 0;
  std::array<std::byte, kMaxControlBytes> data;
};

}  // namespace weft
