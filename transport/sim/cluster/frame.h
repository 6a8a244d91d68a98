// SPDX-License-Identifier: Apache-2.0
// What crosses a simulated cluster: one packet on the wire, with all that it carries. Frames are
// taken from a store and go back to it, wherever they end; their memory is kept for the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/base/post.h"

namespace weft::sim {

using HostIndex = uint32_t;

struct Frame {
  HostIndex from = 0;
  HostIndex to = 0;
  uint32_t entropy = 0;     // what switches choose a way by
  uint32_t wire_bytes = 0;  // what it takes of a link
  bool control = false;
  bool marked = false;  // a queue was longer than it should be
  LinkId link = 0;      // the receiver's name of it
  PathIndex path = 0;

  // A datagram; or a piece of a write, whose description is in `write`.
  std::vector<std::byte> bytes;
  struct Write {
    uint64_t number = 0;  // of the poster's writes
    uint64_t address = 0;
    uint64_t key = 0;
    uint32_t total = 0;   // bytes of the whole write
    uint32_t offset = 0;  // of this piece in it
    uint32_t epoch = 0;
    uint32_t immediate = 0;
  } write;
  bool is_write = false;
};

class FrameStore {
 public:
  Frame* take() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<Frame>());
      free_.push_back(all_.back().get());
    }
    Frame* frame = free_.back();
    free_.pop_back();
    frame->marked = frame->is_write = frame->control = false;
    return frame;
  }
  void give_back(Frame* frame) { free_.push_back(frame); }
  size_t in_use() const { return all_.size() - free_.size(); }

 private:
  std::vector<std::unique_ptr<Frame>> all_;
  std::vector<Frame*> free_;
};

}  // namespace weft::sim
