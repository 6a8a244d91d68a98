// SPDX-License-Identifier: Apache-2.0
//
// The end of a run that ends in the middle (trace_ending.cc says what its parts are). See replay.h.
//
// All ranks meet at the cut, where requests are open and sends are waiting to be taken. Then, where
// a rank was killed in the recording, it is killed; whoever was told so by a failed call must be
// told here too, by ncclRemoteError of any call on a comm of that rank, and soon enough. As NCCL
// does, a thread then makes one more call on another comm, and no more. Last comes the tear-down,
// which leaves requests open: memory goes right after its deregMr, while the comm is still there.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "tools/common/clock.h"
#include "tools/ncclnet/replay.h"

namespace weft::ncclnet {
namespace {

// How long NCCL's application takes to notice and abort.
constexpr auto kUntilAbort = std::chrono::milliseconds(300);

}  // namespace

// Lines that are tried in the background and have no request: sends that the recorded plugin never
// took, or whose call failed.
void ReplayThread::begin_waiting_send(const TraceLine& line) { waiting_.push_back({&line}); }

// True when a call has succeeded. One that fails as it must is noted, any other ends the rank.
bool ReplayThread::went_well(Call call, const TraceLine& post, nccl::Result result) {
  if (calls_left_ > 0 && told()) --calls_left_;
  if (result == nccl::kSuccess) return true;
  const auto& peers = post.comm_kind == 's' ? replay_.mine->send_peers : replay_.mine->recv_peers;
  const int peer = peers[static_cast<size_t>(post.comm)];
  const bool died = at_cut_ && peer >= 0 && is_killed(replay_.trace, static_cast<uint32_t>(peer));
  if (!died || result != nccl::kRemoteError) replay_.rank.fail_call(call, result);
  if (told()) return false;
  told_by_ = &post;
  calls_left_ = 1;
  return false;
}

bool ReplayThread::poll_waiting_sends() {
  bool progress = false;
  for (WaitingSend& send : waiting_) {
    if (calls_left_ == 0) break;
    const TraceLine& line = *send.line;
    Rank& rank = replay_.rank;
    if (send.handle == nullptr) {
      const TracePart& part = line.parts[0];
      const nccl::Result result = rank.attempt(
          Call::kIsend, rank.api().isend, comm(line), static_cast<void*>(replay_.address_of(part)),
          part.size, part.tag, replay_.mhandles[static_cast<size_t>(part.mhandle)],
          Rank::profile_handle(), &send.handle);
      if (!went_well(Call::kIsend, line, result)) send.handle = nullptr;
      progress = progress || send.handle != nullptr;
    } else if (!send.done) {  // a plugin that takes every send
      int done = 0;
      const nccl::Result result = rank.attempt(Call::kTest, rank.api().test, send.handle, &done,
                                               static_cast<int*>(nullptr));
      send.done = went_well(Call::kTest, line, result) && done != 0;
    }
  }
  return progress;
}

void ReplayThread::end() {
  at_cut_ = true;
  const RankTrace& mine = *replay_.mine;
  bool must_be_told = false;
  for (const uint32_t index : mine.threads[thread_]) {
    const TraceLine& line = mine.lines[index];
    if (index < mine.cut || line.result == 0) continue;
    must_be_told = true;
    if (line.call == Call::kIsend) begin_waiting_send(line);
  }
  Rank::slot().doing.store(Doing::kPolling, std::memory_order_relaxed);
  meet(kCut);
  if (is_killed(replay_.trace, replay_.rank.index())) ::kill(::getpid(), SIGKILL);
  if (must_be_told) await_failure();
  calls_left_ = 0;  // of calls that move data: nothing is tested any more
  if (replay_.trace.ending == Ending::kPeerDies) {
    // Each by itself: not from another's tear-down.
    meet(kTold);
    std::this_thread::sleep_for(kUntilAbort);
  }
  replay_.arrived[kTearDown].fetch_add(1);
  Backoff backoff;
  while (replay_.arrived[kTearDown].load() < mine.threads.size()) backoff.pause(true);
  tear_down();
}

// All threads of all ranks that live.
void ReplayThread::meet(MeetingPoint point) {
  RankChannel& channel = replay_.rank.channel();
  if (replay_.arrived[point].fetch_add(1) + 1 == replay_.mine->threads.size()) {
    channel.ready(point, 0);
  }
  Backoff backoff;
  while (!channel.passed(point)) {
    if (poll()) backoff.progressed();
    backoff.pause(true);
  }
}

void ReplayThread::await_failure() {
  const int64_t from = tools::now_ns();
  const double limit = replay_.rank.options().death_within_s;
  Backoff backoff;
  while (calls_left_ > 0) {
    if (poll()) backoff.progressed();
    if (!told() && tools::seconds_between(from, tools::now_ns()) > limit) {
      replay_.rank.fail(tools::kTimedOut,
                        fmt::format("{}{:g} s after a peer was killed, no call has returned "
                                    "ncclRemoteError ({} requests open, {} sends not taken)",
                                    Rank::place(), limit, open_count_, waiting_.size()));
    }
    const bool last_call_has_nothing = told() && open_count_ + waiting_.size() < 2;
    if (last_call_has_nothing) break;
    backoff.pause(false);
  }
  auto& slowest = replay_.rank.board().told_ns;
  const int64_t took = std::max<int64_t>(tools::now_ns() - from, 1);
  int64_t so_far = slowest.load();
  while (so_far < took && !slowest.compare_exchange_weak(so_far, took)) {
  }
}

// The rest of this thread's lines: deregMr, close, finalize.
void ReplayThread::tear_down() {
  const RankTrace& mine = *replay_.mine;
  const auto& own = mine.threads[thread_];
  const auto first = std::lower_bound(own.begin(), own.end(), mine.tear_down);
  replay_.finished[thread_].lines.store(static_cast<uint32_t>(first - own.begin()),
                                        std::memory_order_release);
  run_lines(mine.tear_down, static_cast<uint32_t>(mine.lines.size()));
}

}  // namespace weft::ncclnet
