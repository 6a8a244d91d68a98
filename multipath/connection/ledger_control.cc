// SPDX-License-Identifier: Apache-2.0
// Which paths control may take, and how they are found to work.
#include <algorithm>

#include "multipath/connection/ledger.h"

namespace weft {
namespace {

// An arrival shows that a path works, and is sought anew while control takes it.
constexpr Duration kProofEvery = milliseconds(100);
constexpr Duration kProofLasts = seconds(1);

}  // namespace

// Where control goes other ways than data (placing fabrics) arrivals prove nothing for it.
bool Ledger::carries_control(const Path& path, Time now) const {
  if (path.dead || path.killing) return false;
  return config_.offloads.places || (path.timeouts == 0 && now - path.arrived_at < kProofLasts);
}

void Ledger::ask_for_proof(Path& path, Time now) {
  if (config_.offloads.places || path.killing || !path.copies.empty()) return;
  if (now - std::max(path.arrived_at, path.asked_at) < kProofEvery) return;
  path.asked_at = now;
  path.probe_wanted = true;
}

PathIndex Ledger::control_path(Time now, bool prove) {
  const auto count = static_cast<PathIndex>(paths_.size());
  PathIndex second_best = static_cast<PathIndex>((control_turn_ + 1) % count);
  for (PathIndex tries = 1; tries <= count; ++tries) {
    const auto index = static_cast<PathIndex>((control_turn_ + tries) % count);
    Path& path = paths_[index];
    if (prove) ask_for_proof(path, now);
    if (carries_control(path, now)) return control_turn_ = index;
    if (paths_[second_best].dead && !path.dead && !path.killing) second_best = index;
  }
  return control_turn_ = second_best;
}

}  // namespace weft
