// SPDX-License-Identifier: Apache-2.0
//
// The memory of a replayed rank. The recorded address ranges, merged where they overlap or touch
// (rounded to pages), become arenas of our own, so that regions which shared bytes in the
// recording share them here. Each arena is a memory file, mapped; untouched pages cost nothing.
// Built once, then only read: safe from all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/fd.h"

namespace weft::ncclnet {

class Arenas {
 public:
  /// Adds a recorded range. Call for all ranges, then build().
  void add(uint64_t base, uint64_t bytes);
  /// Empty when it worked, else why not.
  std::string build();
  /// Where the recorded address is here.
  unsigned char* at(uint64_t address) const;

 private:
  struct Arena {
    uint64_t from, to;
    tools::UniqueFd fd;
    tools::Mapping memory;
  };
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
  std::vector<Arena> arenas_;  // by address
};

}  // namespace weft::ncclnet
