// SPDX-License-Identifier: Apache-2.0
//
// A progress display on standard error: one line redrawn in place on a terminal, a plain line now
// and then otherwise. Never on standard output, where the result is. Single-threaded.
#pragma once

#include <cstdint>
#include <string>

namespace weft::tools {

class Progress {
 public:
  /// `total` bytes are to be moved; 0 when only the time is known.
  Progress(std::string what, uint64_t total, bool quiet);
  ~Progress();

  /// Call as often as you like; draws when it is time to.
  void update(uint64_t bytes, const std::string& state);
  /// Clears the line that is redrawn in place, before something else is printed.
  void clear();

 private:
  std::string what_;
  uint64_t total_;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  int64_t start_ns_;
  int64_t drawn_ns_;
  uint64_t drawn_bytes_ = 0;
  double rate_ = 0;
};

/// "613.4 MB", for people.
std::string human_bytes(double bytes);

}  // namespace weft::tools
