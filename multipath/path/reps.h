// SPDX-License-Identifier: Apache-2.0
// Recycled entropies (REPS, Bonato et al. 2024; Ultra Ethernet): send where an answer has just come
// back from without a mark.
//
// What there is to recycle is in Recycled; with nothing to recycle it explores, in the order of
// oblivious spraying. So what a way carries follows what it delivers: a slow or loaded way hands
// out fewer turns, an idle one is found by exploring.
//
// Where this differs from the paper: see recycled.h; and the turns of exploring are weighed by ECN
// marks as the recycled ones are, since a law that keeps queues leaves little to recycle anywhere
// and then exploring decides.
#pragma once

#include <vector>

#include "multipath/path/oblivious.h"
#include "multipath/path/recycled.h"
#include "multipath/path/selector.h"

namespace weft {

class RepsSelector final : public Selector {
 public:
  explicit RepsSelector(const SelectorConfig& config);
  std::string_view name() const override { return "reps"; }
  PathIndex next(const Turn& turn) override;
  void on_ack(const PathAnswer& answer) override { recycled_.on_ack(answer); }
  void on_timeout(PathIndex path, Time now) override;
  void on_alive(PathIndex path, bool alive) override;

 private:
  PathIndex explore(const Turn& turn);

  ObliviousSelector explorer_;
  Recycled recycled_;
  std::vector<double> turns_;  // of exploring, by path: offered and not taken
};

}  // namespace weft
