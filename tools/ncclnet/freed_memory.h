// SPDX-License-Identifier: Apache-2.0
//
// Memory that was deregistered. NCCL frees buffers right after their deregMr, before it closes the
// comm, so from then on a plugin may touch nothing of them. What a deregistration leaves without
// any registration is therefore given back at once, in one of two ways:
//
// - poisoned: filled with a guard pattern, which must still be there at the end;
// - unmapped, as far as whole pages go: whoever touches it, reading or writing, crashes.
//
// Memory that is registered again is no longer looked at. Thread-safe by one lock, taken once a
// registration.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace weft::ncclnet {

class FreedMemory {
 public:
  /// `way` is poison, unmap, or keep, which does nothing.
  explicit FreedMemory(const std::string& way) : keep_(way == "keep"), unmap_(way == "unmap") {}

  /// Call before regMr. `name` says in later complaints what was registered.
  void registered(unsigned char* at, size_t bytes, const std::string& name);
  /// Call after deregMr, with what `registered` was told.
  void deregistered(unsigned char* at, size_t bytes);
  /// What was written since, in words; empty when nothing was.
  std::string written();

 private:
  struct Range {
    unsigned char* from;
    unsigned char* to;
    std::string name;
  };
  void give_back(Range range);

  bool keep_;
  bool unmap_;
  std::mutex mutex_;
  std::vector<Range> live_;   // one a registration
  std::vector<Range> freed_;  // disjoint of each other and of `live_`
};

}  // namespace weft::ncclnet
