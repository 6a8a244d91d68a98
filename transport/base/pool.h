// SPDX-License-Identifier: Apache-2.0
// A bounded pool of objects with stable addresses, grown a chunk at a time and never shrunk.
//
// take() answers nullptr when kMax objects are out: full is a status. Chunks are allocated the
// first time a depth is reached, so an idle owner costs nothing and a busy one soon allocates no
// more. Objects carry a generation that changes on each release, so that a stale (index,
// generation) name finds nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft {

// T is default constructible and has `uint32_t pool_index` and `uint32_t pool_generation` for the
// pool.
template <class T, size_t kMax, size_t kChunk = 32>
class Pool {
  static_assert(kMax % kChunk == 0);

 public:
  T* take() {
    if (free_.empty() && !grow()) return nullptr;
    T* item = free_.back();
    free_.pop_back();
    ++in_use_;
    return item;
  }

  void release(T& item) {
    ++item.pool_generation;
    --in_use_;
    free_.push_back(&item);
  }

  T* find(uint32_t index, uint32_t generation) {
    if (index >= chunks_.size() * kChunk) return nullptr;
    T& item = chunks_[index / kChunk][index % kChunk];
    return item.pool_generation == generation ? &item : nullptr;
  }

  size_t in_use() const { return in_use_; }
  size_t available() const { return kMax - in_use_; }

 private:
  bool grow() {
    if (chunks_.size() * kChunk >= kMax) return false;
    const size_t first = chunks_.size() * kChunk;
    chunks_.push_back(std::make_unique<T[]>(kChunk));
    free_.reserve(chunks_.size() * kChunk);
    for (size_t i = kChunk; i-- > 0;) {
      T& item = chunks_.back()[i];
      item.pool_index = static_cast<uint32_t>(first + i);
      free_.push_back(&item);
    }
    return true;
  }

  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<T*> free_;
  size_t in_use_ = 0;
};

}  // namespace weft
