// SPDX-License-Identifier: Apache-2.0
// How much a connection may have in flight. One law a file, one object a connection, chosen by
// name.
//
// Pure: time comes with the calls. All quantities are payload bytes. What is known of the network
// is in the Pipe, which the law reads and the connection feeds.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "multipath/congestion/pipe.h"
#include "transport/base/post.h"
#include "transport/base/units.h"

namespace weft {

struct AckSample {
  Time now;
  uint64_t bytes = 0;      // newly acked
  Duration rtt{};          // 0: this ack tells none
  Duration queue_delay{};  // of that RTT
  bool marked = false;     // congestion experienced: ECN, or a queue past the mark delay
  PathIndex path = 0;      // on which they went
  uint64_t in_flight = 0;  // after it
  bool held_back = true;   // there is more to send than may go
};

class Law {
 public:
  virtual ~Law() = default;
  virtual std::string_view name() const = 0;
  virtual void on_ack(const AckSample& sample) = 0;
  virtual void on_loss(Time now, uint64_t bytes) = 0;
  virtual void on_timeout(Time now) = 0;
  virtual uint64_t window() const = 0;
  // The window cannot become smaller.
  virtual bool at_least() const { return false; }
};

struct LawConfig {
  uint64_t window_bytes = 2u << 20;  // the most; of `fixed`, the only window
  uint32_t segment_bytes = 1408;
};

// Null when no law has that name. `pipe` must outlive the law.
std::unique_ptr<Law> make_law(std::string_view name, const LawConfig& config, const Pipe& pipe);

}  // namespace weft
