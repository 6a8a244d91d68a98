// SPDX-License-Identifier: Apache-2.0
// A law that hears the median of the paths instead of each: one slow path should change the path,
// which is the selector's part, and not the window.
//
// Of each path the latest queue delay is kept, and its mark, until it is some round trips old: a
// path that the selector avoids says nothing new. The law inside is told the median delay, and a
// mark when more than half of the paths carry one. Losses go through.
#pragma once

#include <array>
#include <memory>

#include "multipath/congestion/law.h"

namespace weft {

class MedianLaw final : public Law {
 public:
  // `name` must outlive the law.
  MedianLaw(std::string_view name, std::unique_ptr<Law> inner, const Pipe& pipe)
      : name_(name), inner_(std::move(inner)), pipe_(pipe) {}
  std::string_view name() const override { return name_; }
  void on_ack(const AckSample& sample) override;
  void on_loss(Time now, uint64_t bytes) override { inner_->on_loss(now, bytes); }
  void on_timeout(Time now) override { inner_->on_timeout(now); }
  uint64_t window() const override { return inner_->window(); }
  bool at_least() const override { return inner_->at_least(); }

 private:
  struct Heard {
    Time at;
    Duration queue_delay{};
    bool marked = false;
  };

  void remember(const AckSample& sample);

  const std::string_view name_;
  const std::unique_ptr<Law> inner_;
  const Pipe& pipe_;
  std::array<Heard, kMaxPaths> heard_;
  std::array<PathIndex, kMaxPaths> known_;  // the paths whose `heard_` counts, in no order
  size_t count_ = 0;
};

}  // namespace weft
