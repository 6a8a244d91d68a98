// SPDX-License-Identifier: Apache-2.0
//
// A rank as the parent sees it: the process, the channel to it, the memory shared with it, and,
// from that, words for what it is doing. The process ends with this object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/fd.h"
#include "tools/common/process.h"
#include "tools/ncclnet/board.h"
#include "tools/ncclnet/channel.h"
#include "tools/ncclnet/launcher.h"

namespace weft::ncclnet {

struct RankProcess {
  tools::Child child;
  ParentChannel channel;
  tools::UniqueFd board_fd, stats_fd;
  tools::Mapping board_memory;
  std::optional<Packet> verdict;
  bool ended = false;
  bool killed_as_planned = false;

  const Board& board() const { return *static_cast<const Board*>(board_memory.data()); }
};

/// Starts rank `index` of `ranks`. Null on failure, with `code` and `why` set.
std::unique_ptr<RankProcess> start_rank(uint32_t index, uint32_t ranks,
                                        const std::vector<std::string>& words,
                                        int network_namespace, tools::ExitCode& code,
                                        std::string& why);

/// Where a thread of the rank is: the line of the trace and the call it is inside of, if any.
std::string thread_state(const RankProcess& rank, uint32_t index, uint32_t thread,
                         const Plan& plan);
/// Where the rank is, for a run that is stuck.
std::string state_of(const RankProcess& rank, uint32_t index, const Plan& plan);

}  // namespace weft::ncclnet
