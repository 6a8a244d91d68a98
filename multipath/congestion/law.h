// SPDX-License-Identifier: Apache-2.0
// How much a connection may have in flight. One law a file, one object a connection, chosen by
// name.
//
// Pure: time comes with the calls. All quantities are payload bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "transport/base/units.h"

namespace weft {

struct AckSample {
  Time now;
  uint64_t bytes = 0;   // newly acked
  Duration rtt{};       // 0 when this ack gave no sample
  Duration base_rtt{};  // the smallest seen; 0 when unknown
  bool marked = false;  // congestion experienced
};

class Law {
 public:
  virtual ~Law() = default;
  virtual std::string_view name() const = 0;
  virtual void on_ack(const AckSample& sample) = 0;
  virtual void on_loss(Time now, uint64_t bytes) = 0;
  virtual void on_timeout(Time now) = 0;
  virtual uint64_t window() const = 0;
};

struct LawConfig {
  uint64_t window_bytes = 2u << 20;  // first and, for `fixed`, only window
  uint32_t segment_bytes = 1408;
};

// Null when no law has that name.
std::unique_ptr<Law> make_law(std::string_view name, const LawConfig& config);

}  // namespace weft
