// SPDX-License-Identifier: Apache-2.0
// All-reduces, their values, their sums and their times; see allreduce.h.
#include "tools/ncclnet/allreduce.h"

#include <cstdio>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "tools/common/clock.h"
#include "tools/ncclnet/links.h"
#include "tools/ncclnet/ring.h"

namespace weft::ncclnet {
namespace {

// Element i is base + factor * rank, base below 1024 and factor below 16, both hashes of element
// and iteration: with 64 ranks a sum stays far below 2^24, where floats are exact.
struct Value {
  uint32_t base, factor;
};

inline Value value_of(uint32_t i, uint32_t iteration) {
  uint32_t h = (i + iteration * 0x9E3779B9u) * 2654435761u;
  h ^= h >> 15;
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  return {h & 1023, (h >> 10) & 15};
}

void fill(std::vector<float>& data, uint32_t rank, uint32_t iteration) {
  const auto count = static_cast<uint32_t>(data.size());
  for (uint32_t i = 0; i < count; ++i) {
    const Value v = value_of(i, iteration);
    data[i] = static_cast<float>(static_cast<int32_t>(v.base + v.factor * rank));
  }
}

float sum_of(uint32_t i, uint32_t iteration, uint32_t ranks) {
  const Value v = value_of(i, iteration);
  return static_cast<float>(
      static_cast<int32_t>(v.base * ranks + v.factor * (ranks * (ranks - 1) / 2)));
}

void check(Rank& rank, const std::vector<float>& data, uint32_t iteration) {
  const auto count = static_cast<uint32_t>(data.size());
  const uint32_t ranks = rank.count();
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < count; ++i) wrong += data[i] != sum_of(i, iteration, ranks) ? 1 : 0;
  if (wrong == 0) return;
  uint32_t first = 0;
  while (data[first] == sum_of(first, iteration, ranks)) ++first;
  rank.fail(tools::kDataWrong, fmt::format("wrong bytes in the result: {} of {} sums of iteration "
                                           "{} ({} bytes) differ, the first at "
                                           "element {}: expected {}, seen {}",
                                           wrong, count, iteration, data.size() * sizeof(float),
                                           first, sum_of(first, iteration, ranks), data[first]));
}

}  // namespace

void plan_allreduce(const Options& options, Plan& plan) {
  plan.ranks = options.ranks;
  for (const uint64_t bytes : options.bytes) {
    plan.total_bytes += bytes * 2 * (options.ranks - 1) * options.iterations;
  }
  // A barrier before each iteration, and one after the last that carries the rank's time in ns.
  auto timed_ns = std::make_shared<uint64_t>(0);
  plan.at_barrier = [&options, timed_ns](uint32_t barrier, uint64_t ns) {
    const uint32_t each = options.iterations + 1;
    if (barrier == 0)
      fmt::print("{:>12} {:>12} {:>12} {:>12}\n", "bytes", "us", "algbw GB/s", "busbw GB/s");
    if (barrier % each != each - 1) return;
    const auto bytes = static_cast<double>(options.bytes[barrier / each]);
    const double us = static_cast<double>(ns) * 1e-3 / options.iterations;
    const double gbps = us > 0 ? bytes / us * 1e-3 : 0;
    fmt::print("{:>12.0f} {:>12.1f} {:>12.3f} {:>12.3f}\n", bytes, us, gbps,
               gbps * 2 * (options.ranks - 1) / options.ranks);
    std::fflush(stdout);
    *timed_ns += ns;
  };
  // Filling and checking is not part of the time.
  plan.finish = [timed_ns](tools::Report& report) {
    report.seconds = static_cast<double>(*timed_ns) * 1e-9;
  };
}

void run_allreduce(Rank& rank) {
  const Options& options = rank.options();
  const uint32_t next = (rank.index() + 1) % rank.count();
  Links links(rank);
  std::vector<std::unique_ptr<RingChannel>> channels;
  for (uint32_t c = 0; c < options.channels; ++c) {
    const size_t in = links.add_in(fmt::format("ring{}.{}", c, rank.index()));
    const size_t out = links.add_out(fmt::format("ring{}.{}", c, next));
    channels.push_back(std::make_unique<RingChannel>(rank, links, in, out));
  }
  links.establish();
  for (auto& channel : channels) channel->prepare();
  auto pump_all = [&channels] {
    bool any = false;
    for (auto& channel : channels) any = channel->pump() || any;
    return any;
  };
  uint32_t barrier = 0;
  for (const uint64_t bytes : options.bytes) {
    std::vector<float> data(bytes / sizeof(float));
    uint64_t ns = 0;
    for (uint32_t iteration = 0; iteration < options.iterations; ++iteration) {
      fill(data, rank.index(), iteration);
      rank.barrier(barrier++, 0, [] {});
      const int64_t start = tools::now_ns();
      const size_t share = (data.size() + channels.size() - 1) / channels.size();
      for (size_t c = 0; c < channels.size(); ++c) {
        const size_t from = std::min(c * share, data.size());
        channels[c]->begin(data.data() + from, std::min(share, data.size() - from));
      }
      Backoff backoff;
      for (bool done = false; !done;) {
        if (pump_all()) backoff.progressed();
        done = true;
        for (auto& channel : channels) done = done && channel->finished();
        if (!done) backoff.pause(false);
      }
      ns += static_cast<uint64_t>(tools::now_ns() - start);
      check(rank, data, iteration);
    }
    rank.barrier(barrier++, ns, [] {});
  }
  links.close();
}

}  // namespace weft::ncclnet
