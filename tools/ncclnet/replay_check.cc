// SPDX-License-Identifier: Apache-2.0
//
// Completions of a replay, and how a replayed rank begins and ends. See replay.h.
//
// Of a completion everything is checked: that test wrote as many sizes as it should, that each is
// the size that was sent, that every byte is right, and that nothing beyond was touched.
#include <limits>
#include <thread>

#include <fmt/format.h>

#include "tools/ncclnet/replay.h"

namespace weft::ncclnet {
namespace {

constexpr int kUnwritten = std::numeric_limits<int>::min() + 77;

}  // namespace

std::string Replay::describe(int rank_index, int request) const {
  const RankTrace& of = trace.ranks[static_cast<size_t>(rank_index)];
  const TraceLine& post =
      of.lines[static_cast<size_t>(of.requests[static_cast<size_t>(request)].post_line)];
  return fmt::format("q{} of rank {} (line {}, {} of {} bytes on {}{})", request, rank_index,
                     post.number, name_of(post.call), post.parts[0].size, post.comm_kind,
                     post.comm);
}

void ReplayThread::wrong(const TraceLine& post, const std::string& what) {
  const int test = replay_.mine->requests[static_cast<size_t>(post.request)].test_line;
  const uint32_t number = test < 0 ? 0 : replay_.mine->lines[static_cast<size_t>(test)].number;
  replay_.rank.fail(tools::kDataWrong,
                    fmt::format("thread {}: {} posted at line {}, done for line {}: {}",
                                replay_.mine->thread_numbers[thread_], name_of(post.call),
                                post.number, number, what));
}

bool ReplayThread::test_oldest(std::deque<int>& open) {
  const int id = open.front();
  Replay::Request& request = replay_.requests[static_cast<size_t>(id)];
  const RequestInfo& info = replay_.mine->requests[static_cast<size_t>(id)];
  const bool no_sizes =
      info.test_line >= 0 && replay_.mine->lines[static_cast<size_t>(info.test_line)].no_sizes;
  int sizes[kMaxParts + 1];
  for (int& size : sizes) size = kUnwritten;
  int done = 0;
  const nccl::Result result =
      replay_.rank.attempt(Call::kTest, replay_.rank.api().test, request.handle, &done,
                           no_sizes ? static_cast<int*>(nullptr) : sizes);
  const TraceLine& post = replay_.mine->lines[static_cast<size_t>(info.post_line)];
  if (!went_well(Call::kTest, post, result) || done == 0) return false;
  open.pop_front();
  --open_count_;
  completed(id, sizes, !no_sizes);
  request.done = true;
  return true;
}

void ReplayThread::completed(int id, const int* sizes, bool have_sizes) {
  const Replay::Request& request = replay_.requests[static_cast<size_t>(id)];
  const RequestInfo& info = replay_.mine->requests[static_cast<size_t>(id)];
  const TraceLine& post = replay_.mine->lines[static_cast<size_t>(info.post_line)];
  Rank::slot().moved_ns.store(tools::now_ns(), std::memory_order_relaxed);
  for (size_t i = post.parts.size(); have_sizes && i <= kMaxParts; ++i) {
    if (sizes[i] != kUnwritten) {
      wrong(post, fmt::format("test wrote a size beyond the {} of the request", post.parts.size()));
    }
  }
  if (post.call == Call::kIsend) {
    // NCCL does not look at a send's size, so some plugins leave it alone.
    if (have_sizes && sizes[0] != kUnwritten &&
        static_cast<int64_t>(sizes[0]) != static_cast<int64_t>(post.parts[0].size)) {
      wrong(post, fmt::format("wrong size: {} bytes were sent, test reported {}",
                              post.parts[0].size, sizes[0]));
    }
    replay_.ranges.close_and_spoil(request.ranges[0]);
  } else if (post.call == Call::kIrecv) {
    received(post, info, have_sizes ? sizes : nullptr);
  }
}

void ReplayThread::received(const TraceLine& post, const RequestInfo& info, const int* sizes) {
  const Replay::Request& request = replay_.requests[static_cast<size_t>(post.request)];
  uint64_t bytes = 0;
  if (info.sources.size() != post.parts.size()) wrong(post, "something arrived that nobody sent");
  for (size_t i = 0; i < post.parts.size(); ++i) {
    check_part(post, info, i, sizes != nullptr ? sizes[i] : static_cast<int>(info.sources[i].size));
    bytes += info.sources[i].size;
    if (const auto beyond = replay_.ranges.close(request.ranges[i])) {
      wrong(post, fmt::format("bytes past the received {} were overwritten: the first is {} of the "
                              "{} posted",
                              info.sources[i].size, *beyond, post.parts[i].size));
    }
  }
  // What the recorded run never looked at is checked, and not counted.
  if (info.test_line >= 0) replay_.rank.data_arrived(bytes, post.parts.size());
}

void ReplayThread::check_part(const TraceLine& post, const RequestInfo& info, size_t part,
                              int size) {
  if (info.sources[part].rank < 0) wrong(post, "something arrived that nobody sent");
  const Source& source = info.sources[part];
  if (static_cast<int64_t>(size) != static_cast<int64_t>(source.size)) {
    wrong(post, fmt::format("wrong size: expected {} (from {}), test reported {}", source.size,
                            replay_.describe(source.rank, source.request),
                            size == kUnwritten ? "none" : fmt::format("{}", size)));
  }
  const unsigned char* at = replay_.address_of(post.parts[part]);
  const auto number = static_cast<uint64_t>(source.request);
  const uint64_t seed = tools::pattern_seed(static_cast<uint32_t>(source.rank), number);
  if (!tools::check_pattern(at, source.size, seed)) return;
  // Gone wrong: whose bytes are they? Any message of the run may be the answer.
  std::vector<tools::KnownMessage> known;
  for (size_t rank = 0; rank < replay_.trace.ranks.size(); ++rank) {
    const RankTrace& of = replay_.trace.ranks[rank];
    for (size_t id = 0; id < of.requests.size(); ++id) {
      const TraceLine& line = of.lines[static_cast<size_t>(of.requests[id].post_line)];
      if (line.call != Call::kIsend) continue;
      known.push_back({tools::pattern_seed(static_cast<uint32_t>(rank), id), line.parts[0].size,
                       replay_.describe(static_cast<int>(rank), static_cast<int>(id))});
    }
  }
  wrong(post, tools::describe_wrong_bytes(at, source.size, seed,
                                          replay_.describe(source.rank, source.request), known));
}

void run_replay(Rank& rank) {
  Replay replay(rank);
  std::string why = load_trace(rank.options().directory, replay.trace);
  if (why.empty() && rank.index() >= replay.trace.ranks.size()) why = "the trace has changed";
  if (!why.empty()) rank.fail(tools::kUsage, why);
  const RankTrace& mine = replay.trace.ranks[rank.index()];
  replay.mine = &mine;
  for (const int line : mine.mhandle_lines) {
    replay.arenas.add(mine.lines[static_cast<size_t>(line)].base,
                      mine.lines[static_cast<size_t>(line)].size);
  }
  why = replay.arenas.build();
  if (!why.empty()) rank.fail(tools::kCannotRunHere, why);
  replay.contexts.resize(static_cast<size_t>(mine.contexts));
  replay.listens.resize(static_cast<size_t>(mine.listens));
  replay.sends.resize(static_cast<size_t>(mine.sends));
  replay.recvs.resize(static_cast<size_t>(mine.recvs));
  replay.mhandles.resize(mine.mhandle_lines.size());
  replay.requests.resize(mine.requests.size());
  const size_t count = mine.threads.size();
  replay.finished = std::make_unique<Replay::Finished[]>(count);
  if (rank.options().rules == "relaxed") replay.relaxed = std::make_unique<RelaxedOrder>(mine);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&replay, i] { ReplayThread(replay, static_cast<uint32_t>(i)).run(); });
  }
  for (std::thread& thread : threads) thread.join();
  why = replay.freed.written();
  if (!why.empty()) rank.fail(tools::kDataWrong, why);
}

}  // namespace weft::ncclnet
