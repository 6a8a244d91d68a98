// SPDX-License-Identifier: Apache-2.0
// What is remembered of the paths, and its middle.
#include "multipath/congestion/median.h"

#include <algorithm>

namespace weft {
namespace {

constexpr int kMemory = 8;  // round trips with a queue as long as the target

}  // namespace

// Enters the sample and lets go of what is too old.
void MedianLaw::remember(const AckSample& sample) {
  const Time since = sample.now - (pipe_.base_rtt() + pipe_.target_delay()) * kMemory;
  bool known = false;
  for (size_t i = 0; i < count_;) {
    known = known || known_[i] == sample.path;
    if (known_[i] != sample.path && heard_[known_[i]].at < since) {
      known_[i] = known_[--count_];
    } else {
      ++i;
    }
  }
  if (!known) known_[count_++] = sample.path;
  heard_[sample.path] = {sample.now, sample.queue_delay, sample.marked};
}

void MedianLaw::on_ack(const AckSample& sample) {
  if (sample.rtt.ns <= 0 || sample.path >= kMaxPaths) {
    inner_->on_ack(sample);
    return;
  }
  remember(sample);
  std::array<Duration, kMaxPaths> delays;
  size_t marked = 0;
  for (size_t i = 0; i < count_; ++i) {
    delays[i] = heard_[known_[i]].queue_delay;
    marked += heard_[known_[i]].marked;
  }
  const auto middle = delays.begin() + static_cast<std::ptrdiff_t>((count_ - 1) / 2);
  std::nth_element(delays.begin(), middle, delays.begin() + static_cast<std::ptrdiff_t>(count_));
  AckSample told = sample;
  told.queue_delay = *middle;
  told.rtt = pipe_.base_rtt() + *middle;
  told.marked = marked * 2 > count_;
  inner_->on_ack(told);
}

}  // namespace weft
