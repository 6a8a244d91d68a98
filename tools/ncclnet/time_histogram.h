// SPDX-License-Identifier: Apache-2.0
//
// How often which time was seen: a histogram of fixed size for any number of samples, so that a
// long run costs no more memory than a short one. Buckets grow with the value, 128 to each power of
// two: a percentile is right to within 0.8%. Count and maximum are exact. One thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace weft::ncclnet {

class TimeHistogram {
 public:
  TimeHistogram() : counts_(kBuckets) {}

  void add(int64_t ns) {
    const uint64_t value = ns > 0 ? static_cast<uint64_t>(ns) : 0;
    ++counts_[bucket_of(std::min(value, kMost))];
    ++count_;
    max_ = std::max(max_, value);
  }

  uint64_t count() const { return count_; }
  uint64_t max_ns() const { return max_; }

  /// The time that `share` (0 to 1) of the samples do not exceed; 0 when there are none.
  uint64_t percentile_ns(double share) const {
    const auto wanted = std::max<uint64_t>(
        1, static_cast<uint64_t>(share * static_cast<double>(count_) + 0.999999));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= wanted) return std::min(middle_of(i), max_);
    }
    return max_;
  }

 private:
  static constexpr uint32_t kBits = 7;
  static constexpr uint32_t kMostBits = 40;  // 18 minutes
  static constexpr uint64_t kMost = (uint64_t{1} << kMostBits) - 1;
  static constexpr size_t kBuckets = (kMostBits - kBits + 1) << kBits;

  // Values below 2^8 have a bucket each; above, the leading 8 bits choose it.
  static size_t bucket_of(uint64_t value) {
    const auto width = static_cast<uint32_t>(std::bit_width(value));
    if (width <= kBits) return value;
    const uint32_t shift = width - 1 - kBits;
    return (static_cast<size_t>(shift) << kBits) + (value >> shift);
  }
  static uint64_t middle_of(size_t bucket) {
    if (bucket < (size_t{2} << kBits)) return bucket;
    const auto shift = static_cast<uint32_t>(bucket >> kBits) - 1;
    const uint64_t lowest = ((bucket & ((1u << kBits) - 1)) | (1u << kBits)) << shift;
    return lowest + (uint64_t{1} << shift) / 2;
  }

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace weft::ncclnet
