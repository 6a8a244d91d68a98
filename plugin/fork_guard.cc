// SPDX-License-Identifier: Apache-2.0
// A handler that the C library runs in every child, and forgets when it unloads us.
#include "plugin/fork_guard.h"

#include <pthread.h>

namespace weft::plugin {

namespace fork_guard {
constinit std::atomic<bool> in_child{false};
}

void watch_for_forks() noexcept {
  static constinit std::atomic<bool> watching{false};
  if (watching.exchange(true)) return;
  // Without memory for it children are not told apart; nothing else is worse for it.
  (void)::pthread_atfork(nullptr, nullptr, [] { fork_guard::in_child.store(true); });
}

}  // namespace weft::plugin
