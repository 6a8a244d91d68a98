// SPDX-License-Identifier: Apache-2.0
//
// The graph of a whole run and its cycles; see trace_rules.h. Every line has two nodes, its
// beginning and its end. What is left after all nodes without a cause before them were taken away,
// again and again, holds a cycle; one is found by walking from cause to cause until a node comes up
// again.
#include <map>
#include <utility>

#include <fmt/format.h>

#include "tools/ncclnet/trace_rules.h"

namespace weft::ncclnet {
namespace {

const char* words_of(Why why) {
  switch (why) {
    case Why::kBegun: return "must have begun";
    case Why::kThread: return "comes after this, on its thread";
    case Why::kObject: return "comes after this, which has the object before it";
    case Why::kAbove: return "comes after all else, this too";
    case Why::kData: return "may send what this brought";
    case Why::kBytes: return "comes after this, which has the same bytes before it";
    case Why::kWindow: return "makes one more than were ever outstanding unless this is done";
    case Why::kRequests: return "comes after this request of its comm is done";
    case Why::kPosted: return "asks for what this posts";
    case Why::kOldest: return "is looked at only when this older request is done";
    case Why::kReceive: return "is taken only once this receive is posted";
    case Why::kMessage: return "is done only once this message is sent";
    case Why::kListen: return "needs the handle of this";
    case Why::kAccepted: return "succeeds only once this accepts";
    case Why::kConnecting: return "succeeds only once this tries to connect";
  }
  return "?";
}

class Graph {
 public:
  explicit Graph(const Trace& trace) : trace_(trace) {
    for (const RankTrace& rank : trace.ranks) {
      first_.push_back(nodes_);
      nodes_ += 2 * rank.lines.size();
    }
    causes_.resize(nodes_);
  }
  void add_needs(const std::vector<RankNeeds>& needs);
  void add_messages();
  void add_oldest_first();
  void add_connections();
  std::string cycle() const;

 private:
  struct Cause {
    size_t node;
    Why why;
  };
  size_t begin_of(size_t rank, size_t line) const { return first_[rank] + 2 * line; }
  size_t end_of(size_t rank, size_t line) const { return begin_of(rank, line) + 1; }
  void after(size_t node, size_t cause, Why why) { causes_[node].push_back({cause, why}); }
  std::vector<bool> take_away() const;
  std::string describe(size_t node) const;

  const Trace& trace_;
  std::vector<size_t> first_;  // node of each rank
  size_t nodes_ = 0;
  std::vector<std::vector<Cause>> causes_;  // by node
};

void Graph::add_needs(const std::vector<RankNeeds>& needs) {
  for (size_t rank = 0; rank < trace_.ranks.size(); ++rank) {
    for (size_t line = 0; line < trace_.ranks[rank].lines.size(); ++line) {
      after(end_of(rank, line), begin_of(rank, line), Why::kBegun);
      for (const Need& need : needs[rank][line]) {
        after(begin_of(rank, line), end_of(rank, need.line), need.why);
      }
    }
  }
}

void Graph::add_messages() {
  for (size_t rank = 0; rank < trace_.ranks.size(); ++rank) {
    for (const RequestInfo& info : trace_.ranks[rank].requests) {
      for (const Source& source : info.sources) {
        if (source.rank < 0) continue;
        const auto from = static_cast<size_t>(source.rank);
        const RequestInfo& sent = trace_.ranks[from].requests[static_cast<size_t>(source.request)];
        const size_t send = end_of(from, static_cast<size_t>(sent.post_line));
        after(send, end_of(rank, static_cast<size_t>(info.post_line)), Why::kReceive);
        if (info.test_line < 0) continue;
        after(end_of(rank, static_cast<size_t>(info.test_line)), send, Why::kMessage);
      }
    }
  }
}

void Graph::add_oldest_first() {
  for (size_t rank = 0; rank < trace_.ranks.size(); ++rank) {
    const RankTrace& of = trace_.ranks[rank];
    std::map<std::tuple<char, int, Call>, int> older;  // its test
    for (const RequestInfo& info : of.requests) {
      if (info.test_line < 0) continue;
      const TraceLine& post = of.lines[static_cast<size_t>(info.post_line)];
      const auto [it, first] =
          older.try_emplace({post.comm_kind, post.comm, post.call}, info.test_line);
      if (first) continue;
      after(end_of(rank, static_cast<size_t>(info.test_line)),
            end_of(rank, static_cast<size_t>(it->second)), Why::kOldest);
      it->second = info.test_line;
    }
  }
}

void Graph::add_connections() {
  struct Tries {
    size_t rank = 0;
    size_t first = 0, last = 0;  // lines: where it begins, where it succeeds
    bool succeeds = false;
  };
  std::map<std::string, std::pair<size_t, size_t>> listens;  // handle: rank, line
  std::map<std::string, Tries> connects;                     // by handle
  std::map<std::pair<size_t, int>, Tries> accepts;           // by rank, listenComm
  for (size_t rank = 0; rank < trace_.ranks.size(); ++rank) {
    const auto& lines = trace_.ranks[rank].lines;
    for (size_t at = 0; at < lines.size(); ++at) {
      const TraceLine& line = lines[at];
      if (line.call == Call::kListen) listens[line.handle] = {rank, at};
      if (line.call != Call::kConnect && line.call != Call::kAccept) continue;
      Tries tries{rank, at, at, false};
      Tries& entry = line.call == Call::kConnect
                         ? connects.try_emplace(line.handle, tries).first->second
                         : accepts.try_emplace({rank, line.listen}, tries).first->second;
      entry.last = at;
      entry.succeeds = !line.null_output;
    }
  }
  for (const auto& [handle, connect] : connects) {
    const auto listen = listens.find(handle);
    if (listen == listens.end() || !connect.succeeds) continue;
    const auto [there, listen_line] = listen->second;
    const size_t connected = end_of(connect.rank, connect.last);
    after(connected, end_of(there, listen_line), Why::kListen);
    const auto accept = accepts.find({there, trace_.ranks[there].lines[listen_line].listen});
    if (accept == accepts.end() || !accept->second.succeeds) continue;
    const size_t accepted = end_of(there, accept->second.last);
    after(connected, begin_of(there, accept->second.first), Why::kAccepted);
    after(accepted, begin_of(connect.rank, connect.first), Why::kConnecting);
    after(accepted, end_of(there, listen_line), Why::kListen);
  }
}

// Which nodes are left when all that can happen has happened.
std::vector<bool> Graph::take_away() const {
  std::vector<std::vector<size_t>> effects(nodes_);
  std::vector<size_t> open(nodes_);
  std::vector<size_t> free;
  for (size_t node = 0; node < nodes_; ++node) {
    open[node] = causes_[node].size();
    if (open[node] == 0) free.push_back(node);
    for (const Cause& cause : causes_[node]) effects[cause.node].push_back(node);
  }
  std::vector<bool> left(nodes_, true);
  while (!free.empty()) {
    const size_t node = free.back();
    free.pop_back();
    left[node] = false;
    for (const size_t effect : effects[node]) {
      if (--open[effect] == 0) free.push_back(effect);
    }
  }
  return left;
}

std::string Graph::describe(size_t node) const {
  size_t rank = first_.size() - 1;
  while (first_[rank] > node) --rank;
  const TraceLine& line = trace_.ranks[rank].lines[(node - first_[rank]) / 2];
  return fmt::format("rank {} line {} `{}`", rank, line.number, line.text);
}

std::string Graph::cycle() const {
  const std::vector<bool> left = take_away();
  size_t node = 0;
  while (node < nodes_ && !left[node]) ++node;
  if (node == nodes_) return {};
  std::vector<int64_t> seen(nodes_, -1);
  std::vector<Cause> path;  // each is a cause of the one before
  path.push_back({node, Why::kBegun});
  while (seen[path.back().node] < 0) {
    seen[path.back().node] = static_cast<int64_t>(path.size()) - 1;
    for (const Cause& cause : causes_[path.back().node]) {
      if (!left[cause.node]) continue;  // one that is left has a cause that is left
      path.push_back(cause);
      break;
    }
  }
  path.erase(path.begin(), path.begin() + seen[path.back().node]);
  std::string text;
  size_t from = 0;  // of a step, which may be many lines of one thread
  for (size_t i = 1; i < path.size(); ++i) {
    if (path[i].why == Why::kBegun) {  // from the end of a line to its beginning
      if (from == i - 1) from = i;
      continue;
    }
    const bool goes_on = i + 2 < path.size() && path[i + 1].why == Why::kBegun &&
                         path[i].why == Why::kThread && path[i + 2].why == Why::kThread;
    if (goes_on) continue;
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", describe(path[from].node),
                        words_of(path[i].why), describe(path[i].node));
    from = i;
  }
  return text;
}

}  // namespace

std::string find_cycle(const Trace& trace, const std::vector<RankNeeds>& needs) {
  Graph graph(trace);
  graph.add_needs(needs);
  graph.add_messages();
  graph.add_oldest_first();
  graph.add_connections();
  return graph.cycle();
}

}  // namespace weft::ncclnet
