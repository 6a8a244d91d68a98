// SPDX-License-Identifier: Apache-2.0
//
// A whole trace: loads all ranks, finds which send ends in which receive, and what each line has
// to wait for.
//
// Connections are paired by the hash of the handle (a listen of one rank, a connect of another).
// On a connection the i-th send with tag t goes to the i-th posted part with tag t. A line that
// names an object waits for the line before it, of any thread, that names the object; finalize
// waits for everything above it. devices and getProperties name none: they wait for the init above
// them, since before the first init a plugin knows no device.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "tools/ncclnet/trace.h"

namespace weft::ncclnet {
namespace {

using CommKey = std::pair<int, int>;  // rank, id

struct Ends {
  std::map<std::string, CommKey> connects;  // by handle: rank, sendComm
  std::map<std::string, CommKey> listens;   // by handle: rank, listenComm
  std::map<CommKey, int> accepted;          // rank, listenComm -> recvComm
};

Ends find_ends(const Trace& trace) {
  Ends ends;
  for (int rank = 0; rank < static_cast<int>(trace.ranks.size()); ++rank) {
    for (const TraceLine& line : trace.ranks[static_cast<size_t>(rank)].lines) {
      if (line.call == Call::kListen) ends.listens[line.handle] = {rank, line.listen};
      if (line.null_output) continue;
      if (line.call == Call::kConnect) ends.connects[line.handle] = {rank, line.comm};
      if (line.call == Call::kAccept) ends.accepted[{rank, line.listen}] = line.comm;
    }
  }
  return ends;
}

std::string match_connection(Trace& trace, CommKey from, CommKey to) {
  RankTrace& sender = trace.ranks[static_cast<size_t>(from.first)];
  RankTrace& receiver = trace.ranks[static_cast<size_t>(to.first)];
  std::map<int, std::deque<std::pair<int, size_t>>> posted;  // by tag: request, part
  for (const TraceLine& line : receiver.lines) {
    if (line.call != Call::kIrecv || line.comm != to.second) continue;
    receiver.requests[static_cast<size_t>(line.request)].sources.resize(line.parts.size());
    for (size_t i = 0; i < line.parts.size(); ++i) {
      posted[line.parts[i].tag].emplace_back(line.request, i);
    }
  }
  for (const TraceLine& line : sender.lines) {
    if (line.call != Call::kIsend || line.comm != from.second || line.request < 0) continue;
    auto& queue = posted[line.parts[0].tag];
    if (queue.empty()) {
      return fmt::format("{} line {}: no receive in {} for this send", sender.file, line.number,
                         receiver.file);
    }
    const auto [request, part] = queue.front();
    queue.pop_front();
    RequestInfo& info = receiver.requests[static_cast<size_t>(request)];
    const TraceLine& post = receiver.lines[static_cast<size_t>(info.post_line)];
    if (line.parts[0].size > post.parts[part].size) {
      return fmt::format("{} line {}: larger than its receive ({} line {})", sender.file,
                         line.number, receiver.file, post.number);
    }
    info.sources[part] = {from.first, line.request, line.parts[0].size};
    trace.bytes += line.parts[0].size;
    ++trace.messages;
  }
  return {};
}

// The objects a line names, as (kind, id).
std::vector<std::pair<char, int>> names_of(const TraceLine& line) {
  std::vector<std::pair<char, int>> names;
  auto add = [&](char kind, int id) {
    if (id >= 0) names.emplace_back(kind, id);
  };
  add('c', line.context);
  add('l', line.listen);
  add(line.comm_kind, line.comm);
  add('m', line.mhandle);
  add('q', line.request);
  for (const TracePart& part : line.parts) add('m', part.mhandle);
  return names;
}

}  // namespace

std::string match_messages(Trace& trace) {
  const Ends ends = find_ends(trace);
  for (RankTrace& rank : trace.ranks) {
    rank.send_peers.assign(static_cast<size_t>(rank.sends), -1);
    rank.recv_peers.assign(static_cast<size_t>(rank.recvs), -1);
  }
  for (const auto& [handle, from] : ends.connects) {
    const auto listens = ends.listens.find(handle);
    if (listens == ends.listens.end()) {
      return fmt::format("{}: nobody listens with the handle {}", trace.name, handle);
    }
    const auto accepted = ends.accepted.find(listens->second);
    if (accepted == ends.accepted.end()) continue;
    const int there = listens->second.first;
    RankTrace& sender = trace.ranks[static_cast<size_t>(from.first)];
    RankTrace& receiver = trace.ranks[static_cast<size_t>(there)];
    sender.send_peers[static_cast<size_t>(from.second)] = there;
    receiver.recv_peers[static_cast<size_t>(accepted->second)] = from.first;
    const std::string why = match_connection(trace, from, {there, accepted->second});
    if (!why.empty()) return why;
  }
  for (const RankTrace& rank : trace.ranks) {
    for (const RequestInfo& request : rank.requests) {
      const TraceLine& post = rank.lines[static_cast<size_t>(request.post_line)];
      const bool unmatched =
          post.call == Call::kIrecv &&
          (request.sources.empty() || std::any_of(request.sources.begin(), request.sources.end(),
                                                  [](const Source& s) { return s.rank < 0; }));
      if (unmatched && request.test_line >= 0) {
        return fmt::format("{} line {}: no send for this receive", rank.file, post.number);
      }
    }
  }
  return {};
}

void find_dependencies(RankTrace& rank) {
  std::map<std::pair<char, int>, uint32_t> last;        // object -> line index
  std::vector<int64_t> above(rank.threads.size(), -1);  // last position of each thread so far
  std::vector<int64_t> inits(rank.threads.size(), -1);  // likewise, of inits
  for (uint32_t at = 0; at < rank.lines.size(); ++at) {
    TraceLine& line = rank.lines[at];
    std::vector<int64_t> need(rank.threads.size(), -1);
    if (line.call == Call::kFinalize) need = above;
    if (line.call == Call::kDevices || line.call == Call::kGetProperties) need = inits;
    for (const auto& name : names_of(line)) {
      const auto it = last.find(name);
      if (it != last.end()) {
        const TraceLine& before = rank.lines[it->second];
        need[before.thread] = std::max<int64_t>(need[before.thread], before.position);
      }
      // Calls with the same context are not ordered among each other.
      if (name.first != 'c' || line.call == Call::kInit) last[name] = at;
    }
    for (uint32_t thread = 0; thread < need.size(); ++thread) {
      if (thread == line.thread || need[thread] < 0) continue;
      line.waits_for.push_back({thread, static_cast<uint32_t>(need[thread])});
    }
    above[line.thread] = line.position;
    if (line.call == Call::kInit) inits[line.thread] = line.position;
  }
}

std::string load_trace(const std::string& directory, Trace& trace) {
  std::error_code error;
  std::filesystem::path path(directory);
  if (!std::filesystem::is_directory(path, error)) {
    return fmt::format("{} is no folder; it should hold rank0.trace, rank1.trace ...", directory);
  }
  if (path.filename().empty()) path = path.parent_path();
  trace.name = path.filename().string();
  while (std::filesystem::exists(path / fmt::format("rank{}.trace", trace.ranks.size()), error)) {
    const std::string file = (path / fmt::format("rank{}.trace", trace.ranks.size())).string();
    trace.ranks.emplace_back();
    const std::string why = parse_rank(file, trace.ranks.back());
    if (!why.empty()) return why;
    find_dependencies(trace.ranks.back());
  }
  if (trace.ranks.empty()) return fmt::format("no rank0.trace in {}", directory);
  const std::string why = match_messages(trace);
  return why.empty() ? find_ending(trace) : why;
}

}  // namespace weft::ncclnet
