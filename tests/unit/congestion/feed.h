// SPDX-License-Identifier: Apache-2.0
// A law on a pipe that knows its base RTT, fed with acks by hand: a window's worth a round.
#pragma once

#include <algorithm>
#include <memory>

#include "multipath/congestion/law.h"

namespace weft {

struct Feed {
  static constexpr uint32_t kSegment = 4096;

  Feed(const Feed&) = delete;  // the law knows where the pipe is
  // 1 GB/s over `base`, so that the pipe's capacity is that times a gigabyte.
  explicit Feed(const char* name, Duration base_rtt = microseconds(100), uint64_t most = 64u << 20,
                uint32_t segment = kSegment)
      : pipe(PipeConfig{.port_bytes_per_second = 1e9}), base(base_rtt) {
    pipe.on_sample(now, base, false, false);
    law = make_law(name, {most, segment}, pipe);
  }

  // Acks for `length`, `acks` of them, that carry a part of the window as a sender sends it. Of
  // them a part is marked, evenly.
  void round(Duration queue, double marked = 0, double used = 1, PathIndex path = 0) {
    constexpr int kAcks = 20;
    const auto bytes = static_cast<uint64_t>(static_cast<double>(law->window()) / kAcks * used);
    double due = 0;
    for (int i = 0; i < kAcks; ++i) {
      now = now + (base + queue) / kAcks;
      due += marked;
      const bool mark = due >= 1;
      if (mark) due -= 1;
      law->on_ack({now, bytes, base + queue, queue, mark, path});
    }
  }
  double window() const { return static_cast<double>(law->window()); }
  Duration target() const { return pipe.target_delay(); }

  Pipe pipe;
  Duration base;
  std::unique_ptr<Law> law;
  Time now{1000000};
};

}  // namespace weft
