// SPDX-License-Identifier: Apache-2.0
// How the two ends end a path's epoch on a placing fabric, so that what it carried is certainly
// dead.
//
// A queue pair carries both directions, so a kill ends both, and each side needs the other's
// confirmation:
//
//   live --(want, or the peer says kill)--> killing: tell "kill e", ask the fabric to kill e
//   killing --(fabric: killed e)--> tell "killed e"
//   killing --(killed here, and the peer says killed e or live > e)--> live at e + 1, where all
//       copies of e are condemned
//
// Every statement is a state and is repeated until the peer's answer makes it moot: "kill e" and
// "killed e" while killing, "live e" (which says that all below e is killed here) whenever the peer
// speaks of less.
#pragma once

#include "multipath/connection/ledger.h"
#include "multipath/connection/types.h"
#include "transport/wire/control.h"

namespace weft {

class PathKill {
 public:
  PathKill(const ConnectionConfig& config, Ledger& ledger);

  // Begins a kill unless one is under way.
  void start(Path& path);
  void start_all();
  void on_killed_here(Time now, PathIndex path, uint32_t epoch);
  void on_statement(const Report& report, const wire::PathState& state);

  bool pending() const { return pending_ > 0; }  // a kill is unconfirmed
  bool due() const { return due_ > 0; }
  void repeat();
  bool compose(wire::ControlWriter& out);
  // Moves commands for the fabric into the outbox; false when some are left.
  bool take_commands(Outbox& out);

 private:
  void tell(Path& path);
  void finish_if_both(Path& path, Time now);

  const ConnectionConfig& config_;
  Ledger& ledger_;
  std::vector<PathCommand> commands_;
  int pending_ = 0;
  int due_ = 0;
};

}  // namespace weft
