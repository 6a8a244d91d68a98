// SPDX-License-Identifier: Apache-2.0
// A bounded queue between one producer thread and one consumer thread, without locks.
//
// Full is an answer, not an error: push returns false. Each side caches the other's index, so that
// in the common case neither touches the cache line that the other writes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace weft {

template <class T, size_t kCapacity>
class SpscRing {
  static_assert((kCapacity & (kCapacity - 1)) == 0, "a power of two");

 public:
  // Producer only.
  bool push(const T& value) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ == kCapacity) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ == kCapacity) return false;
    }
    slots_[tail % kCapacity] = value;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  bool full() {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ < kCapacity) return false;
    head_seen_ = head_.load(std::memory_order_acquire);
    return tail - head_seen_ == kCapacity;
  }

  // Consumer only.
  T* front() {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head == tail_seen_) return nullptr;
    }
    return &slots_[head % kCapacity];
  }
  void pop() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  alignas(64) std::atomic<size_t> head_{0};
  size_t tail_seen_ = 0;  // the consumer's
  alignas(64) std::atomic<size_t> tail_{0};
  size_t head_seen_ = 0;  // the producer's
  alignas(64) std::array<T, kCapacity> slots_{};
};

}  // namespace weft
