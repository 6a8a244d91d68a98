// SPDX-License-Identifier: Apache-2.0
// Recycle, else explore.
#include "multipath/path/reps.h"

namespace weft {
namespace {

constexpr double kFirstTurn = 1;

}  // namespace

RepsSelector::RepsSelector(const SelectorConfig& config)
    : explorer_(config), recycled_(config), turns_(static_cast<size_t>(config.paths), kFirstTurn) {}

PathIndex RepsSelector::next(const Turn& turn) {
  PathIndex path = 0;
  return recycled_.next(turn, explorer_, &path) ? path : explore(turn);
}

PathIndex RepsSelector::explore(const Turn& turn) {
  PathIndex path = explorer_.next(turn);
  for (size_t tries = 0; tries < turns_.size(); ++tries) {
    double& turns = turns_[path];
    turns += recycled_.weight(path);
    if (turns >= 1) {
      turns -= 1;
      break;
    }
    path = explorer_.next(turn);
  }
  return path;
}

void RepsSelector::on_timeout(PathIndex path, Time now) {
  recycled_.on_timeout(path, now);
  turns_[path] = kFirstTurn;
}

void RepsSelector::on_alive(PathIndex path, bool alive) {
  recycled_.on_alive(path, alive);
  turns_[path] = kFirstTurn;
}

}  // namespace weft
