// SPDX-License-Identifier: Apache-2.0
// The states of a kill and what each of them tells the peer (path_kill.h draws them).
#include "multipath/connection/path_kill.h"

namespace weft {

PathKill::PathKill(const ConnectionConfig& config, Ledger& ledger)
    : config_(config), ledger_(ledger) {
  if (config_.offloads.places) commands_.reserve(2 * ledger_.paths().size());
}

void PathKill::tell(Path& path) {
  if (path.tell_state) return;
  path.tell_state = true;
  ++due_;
}

void PathKill::start(Path& path) {
  if (!config_.offloads.places || path.killing) return;
  ledger_.suspend(path);
  path.kill_here_done = path.kill_there_done = false;
  path.kill_stamp = 0;
  ++pending_;
  commands_.push_back({path.index, path.epoch, PathCommand::What::kKill});
  tell(path);
}

void PathKill::start_all() {
  for (Path& path : ledger_.paths()) start(path);
}

void PathKill::on_killed_here(Time now, PathIndex index, uint32_t epoch) {
  if (index >= ledger_.paths().size()) return;
  Path& path = ledger_.paths()[index];
  if (!path.killing || path.epoch != epoch) return;
  path.kill_here_done = true;
  tell(path);
  finish_if_both(path, now);
}

void PathKill::on_statement(const Report& report, const wire::PathState& state) {
  if (!config_.offloads.places || state.path >= ledger_.paths().size()) return;
  Path& path = ledger_.paths()[state.path];
  if (state.epoch < path.epoch) {
    // The peer has not heard that we are past this epoch. Its "live" needs no answer: a kill that
    // we start is told anyway, and answering one would have two ends of different epochs talk for
    // ever.
    if (state.phase != wire::PathPhase::kLive) tell(path);
    return;
  }
  const bool peer_is_past = state.epoch > path.epoch;  // it may only be so after killing ours
  if (peer_is_past && state.epoch - path.epoch > 1)
    return;  // impossible: it needs our word for each step
  if (!path.killing) {
    if (state.phase == wire::PathPhase::kLive && !peer_is_past) return;
    start(path);
  }
  if (peer_is_past || state.phase == wire::PathPhase::kKilled) {
    if (!path.kill_there_done) path.kill_stamp = report.stamp;
    path.kill_there_done = true;
  }
  finish_if_both(path, report.now);
}

void PathKill::finish_if_both(Path& path, Time now) {
  if (!path.killing || !path.kill_here_done || !path.kill_there_done) return;
  --pending_;
  ledger_.bury_epoch(path, path.kill_stamp, now);
  commands_.push_back({path.index, path.epoch, PathCommand::What::kReopen});
  tell(path);  // "live e + 1": the peer may still wait for our word about e
}

void PathKill::repeat() {
  if (pending_ == 0) return;
  for (Path& path : ledger_.paths()) {
    if (path.killing) tell(path);
  }
}

bool PathKill::compose(wire::ControlWriter& out) {
  if (due_ == 0) return true;
  for (Path& path : ledger_.paths()) {
    if (!path.tell_state) continue;
    auto phase = wire::PathPhase::kLive;
    if (path.killing)
      phase = path.kill_here_done ? wire::PathPhase::kKilled : wire::PathPhase::kKill;
    if (!out.add(wire::PathState{path.index, phase, path.epoch, 0})) return false;
    path.tell_state = false;
    --due_;
  }
  return true;
}

bool PathKill::take_commands(Outbox& out) {
  size_t taken = 0;
  while (taken < commands_.size() && out.commands < Outbox::kCommands) {
    out.command[out.commands++] = commands_[taken++];
  }
  commands_.erase(commands_.begin(), commands_.begin() + static_cast<std::ptrdiff_t>(taken));
  return commands_.empty();
}

}  // namespace weft
