// SPDX-License-Identifier: Apache-2.0
// What a forked child inherits of us is inert: our threads are not in it, locks may be held by
// nobody, and its sockets are its parent's, whose datagrams it would take away. So from the first
// init on a child's calls are refused, in guarded(), before they touch anything; those that end
// something succeed and do nothing, since a child's clean-up is often its parent's code.
//
// (A child that executes another program has none of this, nor has one forked before the first
// init.)
#pragma once

#include <atomic>

namespace weft::plugin {

namespace fork_guard {
extern constinit std::atomic<bool> in_child;
}

// Whether this process is a fork of one that used us. One load.
inline bool forked() noexcept { return fork_guard::in_child.load(std::memory_order_relaxed); }

// From now on. May be called again; ends when the library is unloaded.
void watch_for_forks() noexcept;

}  // namespace weft::plugin
