// SPDX-License-Identifier: Apache-2.0
//
// One channel of a ring all-reduce, as NCCL's Simple protocol moves it.
//
// The data is cut into loops of N chunks. In a loop each rank performs 2N-1 operations; operation
// k concerns chunk (rank - 1 - k) mod N:
//
//   k = 0          copy the chunk into a send slot
//   0 < k < N-1    receive, add our own, send on
//   k = N-1        receive, add our own: the sum; keep it, send it on
//   N-1 < k < 2N-2 receive the sum, keep it, send it on
//   k = 2N-2       receive the sum, keep it
//
// Both sides have `slots` buffers of `slot_bytes`; receives are posted ahead as slots become free,
// larger than what comes, and sends leave as soon as the plugin takes them. Requests are tested
// oldest first. `pump` does what can be done now and never waits. Behind each message in a receive
// slot lies a guard, within it lie canaries that the data must have overwritten when the receive is
// done, and the ends of a send slot are spoiled once its send is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tools/ncclnet/links.h"

namespace weft::ncclnet {

class RingChannel {
 public:
  RingChannel(Rank& rank, Links& links, size_t in, size_t out);
  /// Registers the slots; the connections must be there.
  void prepare();

  /// Begins to reduce `count` floats at `data`, in place.
  void begin(float* data, size_t count);
  /// Does what can be done now. True when anything was.
  bool pump();
  bool finished() const { return operation_ == operations_ && completed_ == sends_; }

 private:
  struct Chunk {
    float* at;
    size_t count;
  };
  Chunk chunk_of(uint64_t loop, uint64_t k) const;
  Chunk chunk_received(uint64_t number) const;
  unsigned char* slot(std::vector<unsigned char>& memory, uint64_t number) const;
  bool post_receive();
  bool test_receive();
  bool operate();
  bool post_send();
  bool test_send();

  Rank& rank_;
  Links& links_;
  size_t in_, out_;
  uint64_t slots_;
  size_t slot_bytes_;
  std::vector<unsigned char> receive_memory_, send_memory_;
  void* receive_mhandle_ = nullptr;
  void* send_mhandle_ = nullptr;
  std::vector<void*> receive_requests_, send_requests_;
  std::vector<size_t> send_bytes_;

  float* data_ = nullptr;
  size_t count_ = 0, chunk_count_ = 0;
  uint64_t operations_ = 0, receives_ = 0, sends_ = 0;  // to be done in all
  uint64_t operation_ = 0;
  uint64_t posted_ = 0, arrived_ = 0, consumed_ = 0;  // receives
  uint64_t filled_ = 0, sent_ = 0, completed_ = 0;    // sends
};

}  // namespace weft::ncclnet
