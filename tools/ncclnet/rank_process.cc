// SPDX-License-Identifier: Apache-2.0
// Starting a rank, and saying where it is; see rank_process.h.
#include "tools/ncclnet/rank_process.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "tools/ncclnet/rank.h"

namespace weft::ncclnet {
namespace {

// Where a rank is that makes its own traffic.
std::string counts_of(const Board& board) {
  if (board.connected < board.connections) {
    return fmt::format("connecting ({} of {} are up)", board.connected.load(),
                       board.connections.load());
  }
  return fmt::format("{} of {} posted receives done, {} of {} accepted sends done",
                     board.receives_done.load(), board.receives.load(), board.sends_done.load(),
                     board.sends.load());
}

}  // namespace

std::unique_ptr<RankProcess> start_rank(uint32_t index, uint32_t ranks,
                                        const std::vector<std::string>& words,
                                        int network_namespace, tools::ExitCode& code,
                                        std::string& why) {
  code = tools::kCannotRunHere;
  auto rank = std::make_unique<RankProcess>();
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    why = fmt::format("socketpair: {}", std::strerror(errno));
    return nullptr;
  }
  rank->channel = ParentChannel(tools::UniqueFd(ends[0]));
  tools::UniqueFd theirs(ends[1]);
  rank->board_fd = tools::make_memory_file("board", sizeof(Board));
  rank->stats_fd = tools::make_memory_file("stats", 0);
  if (rank->board_fd) rank->board_memory = tools::Mapping(rank->board_fd.get(), sizeof(Board));
  if (!rank->stats_fd || rank->board_memory.data() == nullptr) {
    why = fmt::format("no shared memory: {}", std::strerror(errno));
    return nullptr;
  }
  tools::SpawnOptions spawn;
  spawn.arguments = {"weft_ncclnet", "rank", fmt::format("{}", index), fmt::format("{}", ranks)};
  spawn.arguments.insert(spawn.arguments.end(), words.begin(), words.end());
  spawn.inherit = {{theirs.get(), kChannelFd},
                   {rank->board_fd.get(), kBoardFd},
                   {rank->stats_fd.get(), kStatsFd}};
  spawn.environment = {fmt::format("WEFT_STATS=/proc/self/fd/{}", kStatsFd)};
  spawn.network_namespace = network_namespace;
  rank->child = tools::spawn(spawn, why);
  if (!rank->child.running()) {
    code = errno == EPERM ? tools::kCannotRunHere : tools::kFailed;
    return nullptr;
  }
  return rank;
}

std::string thread_state(const RankProcess& rank, uint32_t index, uint32_t thread,
                         const Plan& plan) {
  const ThreadSlot& slot = rank.board().threads[thread];
  const uint32_t line = slot.line.load(std::memory_order_relaxed);
  const Call inside = slot.inside.load(std::memory_order_relaxed);
  std::string text;
  if (line > 0 && plan.describe_line) text = plan.describe_line(index, thread, line);
  if (inside != Call::kNone) {
    text += fmt::format("{}inside the plugin's {}", text.empty() ? "" : ", ", name_of(inside));
  }
  return text;
}

// What keeps a rank: the threads that are inside a call or poll; those that merely wait for
// another thread's line only when there is nothing else to say.
std::string state_of(const RankProcess& rank, uint32_t index, const Plan& plan) {
  std::string busy, waiting;
  for (uint32_t t = 0; t < kMaxThreads; ++t) {
    const ThreadSlot& slot = rank.board().threads[t];
    const Doing doing = slot.doing.load(std::memory_order_relaxed);
    if (doing == Doing::kNotStarted || doing == Doing::kFinished) continue;
    std::string text = thread_state(rank, index, t, plan);
    if (doing == Doing::kWaitingForLine && slot.inside.load() == Call::kNone) {
      waiting += fmt::format("{}{}, waiting for line {}", waiting.empty() ? "" : "; ", text,
                             slot.awaited.load(std::memory_order_relaxed));
    } else {
      if (text.empty() || plan.describe_line == nullptr) {
        text = counts_of(rank.board()) + (text.empty() ? "" : ", ") + text;
      }
      busy += fmt::format("{}{}", busy.empty() ? "" : "; ", text);
    }
  }
  if (busy.empty()) busy = waiting.empty() ? "starting" : waiting;
  return fmt::format("rank {}: {}", index, busy);
}

}  // namespace weft::ncclnet
