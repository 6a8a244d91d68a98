// SPDX-License-Identifier: Apache-2.0
// What both ends of a stream agree on about buffers and their bytes; stream.h has the idea.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/common/pattern.h"
#include "tools/ncclnet/options.h"

namespace weft::ncclnet {

struct StreamLayout {
  static constexpr size_t kGuardBytes = 64;
  static constexpr size_t kLine = 128;
  static constexpr uint64_t kStampKey = 0x5EED0FBEA7C0DE00u;
  static constexpr size_t kStampBytes = 8;

  explicit StreamLayout(const Options& o)
      : bytes(o.bytes[0]),
        parts(o.parts),
        window(o.inflight),
        stride((bytes + kGuardBytes + kLine - 1) / kLine * kLine) {}

  size_t bytes;
  uint32_t parts;
  uint64_t window;
  size_t stride;  // of one part in a buffer, with room for a guard

  uint64_t buffers() const { return window + 1; }  // of the sender
  size_t buffer_bytes() const { return stride * parts; }
  bool stamped() const { return bytes >= 2 * kStampBytes; }
  // Short messages have no stamp and are filled anew each time.
  uint64_t seed(uint64_t group, uint32_t part) const {
    return tools::pattern_seed(part, stamped() ? group % buffers() : group + buffers());
  }
  static uint64_t stamp(uint64_t group, uint32_t part) { return (group << 8 | part) ^ kStampKey; }
};

}  // namespace weft::ncclnet
