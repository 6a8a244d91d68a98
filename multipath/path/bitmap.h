// SPDX-License-Identifier: Apache-2.0
// Spraying that passes over what has lately been marked (Ultra Ethernet's bitmap of congested
// entropies).
//
// Every path has a counter of turns that it is to be passed over: a marked burst adds one, a
// time-out fifteen, which is also the most; each time it is passed over takes one away. Turns come
// in the order of oblivious spraying. Where all paths are marked alike all are passed over alike,
// and it sprays.
#pragma once

#include <vector>

#include "multipath/path/oblivious.h"
#include "multipath/path/selector.h"

namespace weft {

class BitmapSelector final : public Selector {
 public:
  explicit BitmapSelector(const SelectorConfig& config);
  std::string_view name() const override { return "bitmap"; }
  PathIndex next(const Turn& turn) override;
  void on_ack(const PathAnswer& answer) override;
  void on_timeout(PathIndex path, Time now) override;
  void on_alive(PathIndex path, bool alive) override;

 private:
  ObliviousSelector walk_;
  std::vector<double> skips_;  // by path
};

}  // namespace weft
