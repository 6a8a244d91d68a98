// SPDX-License-Identifier: Apache-2.0
// A window and its bounds: the same for every law that moves one.
//
// The most is what is configured. The least is so many segments that paths can take turns, and no
// more than 64 KiB: under it a window would need pacing, which there is none. Until the pipe has
// seen a round trip the window is 64 KiB within these bounds.
#pragma once

#include <algorithm>

#include "multipath/congestion/law.h"

namespace weft {

class Window {
 public:
  explicit Window(const LawConfig& config)
      : least_(std::min(16.0 * config.segment_bytes, std::max(2.0 * config.segment_bytes, kFirst))),
        most_(std::max<double>(static_cast<double>(config.window_bytes), least_)),
        bytes_(std::clamp(kFirst, least_, most_)) {}

  double bytes() const { return bytes_; }
  uint64_t whole() const { return static_cast<uint64_t>(bytes_); }
  bool at_least() const { return bytes_ <= least_; }
  void set(double bytes) { bytes_ = std::clamp(bytes, least_, most_); }

  // Opens the window to so many capacities of the pipe, once that is known. Whether that was now.
  bool open(const Pipe& pipe, double capacities) {
    if (open_ || !pipe.known()) return false;
    set(capacities * static_cast<double>(pipe.capacity()));
    return open_ = true;
  }
  bool is_open() const { return open_; }

 private:
  static constexpr double kFirst = 64 << 10;

  const double least_;
  const double most_;
  double bytes_;
  bool open_ = false;
};

// For laws whose published constants are those of one network: its packet in parts of its capacity
// (Ultra Ethernet's reference: 100 Gbit/s and 12 us, so 150,000 bytes; an MTU of 4,160).
inline constexpr double kReferencePacket = 4160.0 / 150000.0;
// The window that such constants take for one size for all.
inline constexpr double kReferenceWindow = 100e3;

// What additive growth is a part of: half-way between the capacity, of which each who shares a link
// only learns his share, and one size for all: so the smaller grows faster for its size.
double growth_unit(const Pipe& pipe);

}  // namespace weft
