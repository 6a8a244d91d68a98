// SPDX-License-Identifier: Apache-2.0
//
// Which bytes of a rank's memory are in use by requests that are not reported done, and the
// guards that catch a plugin reaching beyond what it may touch:
//
// - behind the bytes that a receive will get, as far as the posted buffer goes, lies a guard
//   pattern that must still be there when the receive is done;
// - when a send is done, the first and last bytes of its source are overwritten, so a plugin that
//   reads the source later sends garbage, which the receiver's check finds.
//
// NCCL posts receives over bytes that an open send still reads, so a guard is laid only where no
// open request is, and dropped when a later request takes its bytes. Thread-safe by one lock,
// taken a few times a message; the list is as long as the rank has requests open (tens).
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace weft::ncclnet {

class OpenRanges {
 public:
  /// A request begins to use [at, at + bytes). With `guard_bytes` it also gets a guard at
  /// at + guard_at, which lies within the range. Returns its entry.
  int open(unsigned char* at, size_t bytes, size_t guard_at, size_t guard_bytes);
  /// The request is done. Returns the offset (from `at`) of the first overwritten guard byte.
  std::optional<size_t> close(int entry);
  /// The send whose source is [at, at + bytes) is done: spoils its ends if nothing else is there.
  void close_and_spoil(int entry);

 private:
  struct Entry {
    unsigned char* from = nullptr;
    unsigned char* to = nullptr;
    unsigned char* guard = nullptr;  // null: none, or no longer valid
    size_t guard_bytes = 0;
    bool used = false;
  };
  bool free_of_others(const unsigned char* from, const unsigned char* to, const Entry* self) const;

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace weft::ncclnet
