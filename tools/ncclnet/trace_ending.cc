// SPDX-License-Identifier: Apache-2.0
//
// How a recorded run ends. Where a rank aborts or dies, its lines fall into three parts: up to the
// cut all is as in any run; then, if a peer has died, calls fail; then comes the tear-down, with
// requests left open. Only what a replay can do is let through: nothing is begun after the cut, and
// what fails is a connection to a rank that was killed.
#include <algorithm>

#include <fmt/format.h>

#include "tools/ncclnet/trace.h"

namespace weft::ncclnet {
namespace {

bool moves_data(const TraceLine& line) {
  return line.call == Call::kIsend || line.call == Call::kIrecv || line.call == Call::kIflush ||
         line.call == Call::kTest;
}

bool tears_down(const TraceLine& line) {
  return line.call == Call::kDeregMr || line.call == Call::kCloseSend ||
         line.call == Call::kCloseRecv;
}

uint32_t find_tear_down(const std::vector<TraceLine>& lines) {
  const auto last = std::find_if(lines.rbegin(), lines.rend(), moves_data);
  return static_cast<uint32_t>(std::find_if(last.base(), lines.end(), tears_down) - lines.begin());
}

std::string check_after_cut(const Trace& trace, const RankTrace& rank) {
  for (uint32_t at = rank.cut; at < rank.lines.size(); ++at) {
    const TraceLine& line = rank.lines[at];
    auto wrong = [&](const char* what) {
      return fmt::format("{} line {}: {}", rank.file, line.number, what);
    };
    if (moves_data(line) && line.result == 0) return wrong("data is moved after a failed call");
    if (!moves_data(line) && !tears_down(line) && line.call != Call::kFinalize &&
        line.call != Call::kSetNetAttr && line.call != Call::kCloseListen) {
      return wrong("something is begun after the run was aborted");
    }
    if (tears_down(line) && at < rank.tear_down) {
      return wrong("something is torn down while calls go on failing");
    }
    if (line.result == 0) continue;
    const auto& peers = line.comm_kind == 's' ? rank.send_peers : rank.recv_peers;
    const int peer = peers[static_cast<size_t>(line.comm)];
    if (peer < 0 || !is_killed(trace, static_cast<uint32_t>(peer))) {
      return wrong("it fails, and the peer was not killed (the peer's file has an `# end` line)");
    }
  }
  return {};
}

// Of what was sent, the rest may arrive or not.
void count_received(Trace& trace) {
  trace.bytes = trace.messages = 0;
  for (const RankTrace& rank : trace.ranks) {
    for (const RequestInfo& request : rank.requests) {
      if (request.test_line < 0) continue;
      for (const Source& source : request.sources) trace.bytes += source.size;
      trace.messages += request.sources.size();
    }
  }
}

}  // namespace

std::string find_ending(Trace& trace) {
  for (RankTrace& rank : trace.ranks) {
    rank.cut = rank.tear_down = static_cast<uint32_t>(rank.lines.size());
    for (const TraceLine& line : rank.lines) {
      rank.abandons = rank.abandons || line.abandoned || !line.left.empty();
      if (line.result != 0) trace.ending = Ending::kPeerDies;
    }
    if (rank.abandons) trace.ending = std::max(trace.ending, Ending::kAborts);
  }
  if (trace.ending == Ending::kWhole) return {};
  for (uint32_t i = 0; i < trace.ranks.size(); ++i) {
    RankTrace& rank = trace.ranks[i];
    if (is_killed(trace, i)) continue;
    if (!rank.has_end) return rank.file + ": it has no `# end` line: is it cut off?";
    rank.tear_down = find_tear_down(rank.lines);
    const auto failed = std::find_if(rank.lines.begin(), rank.lines.end(),
                                     [](const TraceLine& line) { return line.result != 0; });
    rank.cut = std::min(rank.tear_down, static_cast<uint32_t>(failed - rank.lines.begin()));
    const std::string why = check_after_cut(trace, rank);
    if (!why.empty()) return why;
  }
  count_received(trace);
  return {};
}

}  // namespace weft::ncclnet
