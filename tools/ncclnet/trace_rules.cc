// SPDX-License-Identifier: Apache-2.0
// The rules of strict and relaxed replay as lists of what each line waits for. See trace_rules.h.
#include "tools/ncclnet/trace_rules.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weft::ncclnet {
namespace {

using CommKey = std::pair<char, int>;  // 's' or 'r', id

bool is_operation(Call call) {
  return call == Call::kIsend || call == Call::kIrecv || call == Call::kIflush;
}

class Relaxer {
 public:
  explicit Relaxer(const RankTrace& rank) : rank_(rank), needs_(rank.lines.size()) {}
  RankNeeds run();

 private:
  struct Operation {  // a line that reads or writes memory
    uint32_t line;
    uint64_t from, to;
  };
  struct Comm {
    std::vector<uint32_t> isends, irecvs;  // lines
    int open = 0;                          // posted and not reported done so far
    int most = 1;                          // of `open`, in the whole file
    std::vector<uint32_t> done;            // tests
  };

  void count_outstanding();
  void objects(uint32_t at);
  void object(uint32_t at, char kind, int id);
  void operation(uint32_t at);
  void overlaps(uint32_t at);
  void tested(uint32_t at);
  void need(uint32_t at, uint32_t line, Why why) {
    std::vector<Need>& list = needs_[at];
    const bool known =
        std::any_of(list.begin(), list.end(), [&](const Need& n) { return n.line == line; });
    if (!known && line != at) list.push_back({line, why});
  }
  const TraceLine& line_of(uint32_t at) const { return rank_.lines[at]; }
  // The test that reported the request of this line done, if it is above `at`; else -1.
  int done_above(uint32_t line, uint32_t at) const {
    const int request = line_of(line).request;
    if (request < 0) return -1;
    const int test = rank_.requests[static_cast<size_t>(request)].test_line;
    return test >= 0 && static_cast<uint32_t>(test) < at ? test : -1;
  }

  const RankTrace& rank_;
  RankNeeds needs_;
  std::map<CommKey, uint32_t> last_;  // object -> the last line that named it
  std::map<CommKey, Comm> comms_;
  std::vector<Operation> operations_;
  // By comm and call: the latest receive or flush, in the order of posting, that is done so far.
  std::map<std::pair<int, Call>, std::pair<int, uint32_t>> arrived_;
};

void Relaxer::count_outstanding() {
  for (const TraceLine& line : rank_.lines) {
    if (line.comm < 0) continue;
    Comm& comm = comms_[{line.comm_kind, line.comm}];
    if (line.request < 0) continue;
    const auto& info = rank_.requests[static_cast<size_t>(line.request)];
    const Call posted = rank_.lines[static_cast<size_t>(info.post_line)].call;
    if (posted == Call::kIflush) continue;
    comm.open += line.call == Call::kTest ? -1 : 1;
    comm.most = std::max(comm.most, comm.open);
  }
}

void Relaxer::object(uint32_t at, char kind, int id) {
  if (id < 0) return;
  const auto it = last_.find({kind, id});
  if (it != last_.end()) need(at, it->second, Why::kObject);
  // Calls with the same context are not ordered among each other.
  if (kind != 'c' || line_of(at).call == Call::kInit) last_[{kind, id}] = at;
}

void Relaxer::objects(uint32_t at) {
  const TraceLine& line = line_of(at);
  switch (line.call) {
    case Call::kTest: return;
    case Call::kDevices:
    case Call::kGetProperties:
      for (uint32_t i = 0; i < at; ++i) {
        if (line_of(i).call == Call::kInit) need(at, i, Why::kObject);
      }
      return;
    case Call::kFinalize:
      for (uint32_t i = 0; i < at; ++i) need(at, i, Why::kAbove);
      return;
    default: break;
  }
  object(at, 'c', line.context);
  object(at, 'l', line.listen);
  object(at, line.comm_kind, line.comm);
  object(at, 'm', line.mhandle);
  for (const TracePart& part : line.parts) {  // many may use a region at once
    const int made = rank_.mhandle_lines[static_cast<size_t>(part.mhandle)];
    need(at, static_cast<uint32_t>(made), Why::kObject);
  }
  if (line.call != Call::kDeregMr && line.call != Call::kCloseSend &&
      line.call != Call::kCloseRecv) {
    return;
  }
  for (const uint32_t test : comms_[{line.comm_kind, line.comm}].done) {
    need(at, test, Why::kRequests);
  }
}

void Relaxer::overlaps(uint32_t at) {
  for (const TracePart& part : line_of(at).parts) {
    const uint64_t from =
        line_of(static_cast<uint32_t>(rank_.mhandle_lines[static_cast<size_t>(part.mhandle)]))
            .base +
        part.offset;
    const uint64_t to = from + part.size;
    for (const Operation& other : operations_) {
      if (other.line == at || from >= other.to || other.from >= to) continue;
      const int test = done_above(other.line, at);
      need(at, test >= 0 ? static_cast<uint32_t>(test) : other.line, Why::kBytes);
    }
    operations_.push_back({at, from, to});
  }
}

void Relaxer::operation(uint32_t at) {
  const TraceLine& line = line_of(at);
  overlaps(at);
  if (line.call == Call::kIsend) {
    for (const auto& [key, done] : arrived_) need(at, done.second, Why::kData);
  }
  if (line.call == Call::kIflush) return;
  Comm& comm = comms_[{line.comm_kind, line.comm}];
  auto& posted = line.call == Call::kIsend ? comm.isends : comm.irecvs;
  const auto window = static_cast<size_t>(comm.most);
  if (posted.size() >= window) {
    const int test = done_above(posted[posted.size() - window], at);
    if (test >= 0) need(at, static_cast<uint32_t>(test), Why::kWindow);
  }
  posted.push_back(at);
}

void Relaxer::tested(uint32_t at) {
  const TraceLine& line = line_of(at);
  const auto& info = rank_.requests[static_cast<size_t>(line.request)];
  need(at, static_cast<uint32_t>(info.post_line), Why::kPosted);
  comms_[{line.comm_kind, line.comm}].done.push_back(at);
  const Call posted = line_of(static_cast<uint32_t>(info.post_line)).call;
  if (posted == Call::kIsend) return;
  // Requests of a comm and kind are done in the order of posting: the latest stands for all.
  auto& latest = arrived_.try_emplace({line.comm, posted}, -1, at).first->second;
  if (info.post_line > latest.first) latest = {info.post_line, at};
}

RankNeeds Relaxer::run() {
  count_outstanding();
  std::map<std::pair<std::string, int>, uint32_t> tries;  // connect: the handle; accept: listenComm
  for (uint32_t at = 0; at < rank_.lines.size(); ++at) {
    const TraceLine& line = line_of(at);
    objects(at);
    if (is_operation(line.call)) operation(at);
    if (line.call == Call::kTest) tested(at);
    if (line.call == Call::kConnect || line.call == Call::kAccept) {
      const auto [it, first] = tries.try_emplace({line.handle, line.listen}, at);
      if (!first) need(at, it->second, Why::kBegun);
    }
  }
  return std::move(needs_);
}

}  // namespace

RankNeeds relaxed_needs(const RankTrace& rank) { return Relaxer(rank).run(); }

RankNeeds strict_needs(const RankTrace& rank) {
  RankNeeds needs(rank.lines.size());
  for (uint32_t at = 0; at < rank.lines.size(); ++at) {
    const TraceLine& line = rank.lines[at];
    if (line.position > 0) {
      needs[at].push_back({rank.threads[line.thread][line.position - 1], Why::kThread});
    }
    for (const Dependency& dependency : line.waits_for) {
      needs[at].push_back({rank.threads[dependency.thread][dependency.position], Why::kObject});
    }
  }
  return needs;
}

}  // namespace weft::ncclnet
