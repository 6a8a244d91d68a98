// SPDX-License-Identifier: Apache-2.0
// Flowlets (Sinha et al., HotNets 2004; LetFlow, NSDI 2017): one path as long as bursts follow each
// other, another by lot after a gap.
//
// A gap is half a smoothed round trip without a burst: more than ways of one network differ by. The
// slower a way, the longer the pauses of who waits for its acks, so flowlets leave slow ways sooner
// without being told. A time-out is a gap too.
#pragma once

#include "multipath/path/drawn_path.h"
#include "multipath/path/rtt.h"
#include "multipath/path/selector.h"

namespace weft {

class FlowletSelector final : public Selector {
 public:
  explicit FlowletSelector(const SelectorConfig& config) : path_(config) {}
  std::string_view name() const override { return "flowlet"; }
  PathIndex next(const Turn& turn) override {
    const bool gap = began_ && turn.now - last_ > bound();
    if (leave_ || gap) path_.leave(turn);
    leave_ = false;
    began_ = true;
    last_ = turn.now;
    return path_.get(turn);
  }
  void on_ack(const PathAnswer& answer) override {
    if (answer.rtt.ns > 0) rtt_.add(answer.rtt, false);
  }
  void on_timeout(PathIndex path, Time) override { leave_ = leave_ || path == path_.get(); }
  void on_alive(PathIndex path, bool alive) override { path_.on_alive(path, alive); }

 private:
  Duration bound() const { return rtt_.known() ? rtt_.smoothed() / 2 : kFirstBound; }

  static constexpr Duration kFirstBound = microseconds(500);  // LetFlow's
  DrawnPath path_;
  bool leave_ = false;  // with the next burst
  bool began_ = false;
  Time last_;         // when a burst went
  RttEstimator rtt_;  // over all paths
};

}  // namespace weft
