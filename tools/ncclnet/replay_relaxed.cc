// SPDX-License-Identifier: Apache-2.0
//
// A thread of a relaxed replay: it begins every line of its own as soon as the line may begin, goes
// on trying all that have begun, earliest first, and finishes them in whatever order they succeed.
// See replay.h and trace_rules.h.
#include <algorithm>

#include "tools/ncclnet/relaxed_order.h"
#include "tools/ncclnet/replay.h"

namespace weft::ncclnet {

// True when it has finished at once.
bool ReplayThread::begin(const TraceLine& line) {
  switch (line.call) {
    case Call::kConnect:
    case Call::kAccept: begin_attempt(line); return line.null_output;
    case Call::kIsend: prepare_send(line); return false;
    case Call::kIrecv: prepare_receive(line); return false;
    case Call::kTest: return false;
    default: perform(line); return true;
  }
}

// True when a line that has begun has succeeded.
bool ReplayThread::succeeds(const TraceLine& line) {
  switch (line.call) {
    case Call::kConnect:
    case Call::kAccept: return established(line);
    case Call::kIsend: return try_send(line);
    case Call::kIrecv: return try_receive(line);
    default: return replay_.requests[static_cast<size_t>(line.request)].done;
  }
}

// For the parent, when it has to say where a rank is stuck.
void ReplayThread::show_where(const std::vector<uint32_t>& trying, uint32_t first_unfinished) {
  ThreadSlot& slot = Rank::slot();
  const auto& lines = replay_.mine->lines;
  const uint32_t here = trying.empty() ? first_unfinished : trying.front();
  slot.line.store(lines[here].number, std::memory_order_relaxed);
  if (trying.empty()) {
    const uint32_t awaited = replay_.relaxed->awaited_by(here);
    slot.awaited.store(lines[awaited].number, std::memory_order_relaxed);
  }
  slot.doing.store(trying.empty() ? Doing::kWaitingForLine : Doing::kPolling,
                   std::memory_order_relaxed);
}

void ReplayThread::run_relaxed() {
  RelaxedOrder& order = *replay_.relaxed;
  const auto& lines = replay_.mine->lines;
  const std::vector<uint32_t>& own = replay_.mine->threads[thread_];
  std::vector<bool> finished(own.size());
  size_t first = 0;              // of `own`: all before it are finished
  std::vector<uint32_t> trying;  // sorted
  std::vector<uint32_t> fresh;
  Backoff backoff;
  while (first < own.size()) {
    bool progress = false;
    auto finish = [&](uint32_t at) {
      finished[lines[at].position] = true;
      order.finish(at);
      progress = true;
    };
    fresh.clear();
    order.take(thread_, fresh);
    std::sort(fresh.begin(), fresh.end());
    for (const uint32_t at : fresh) {
      Rank::slot().line.store(lines[at].number, std::memory_order_relaxed);
      if (begin(lines[at]))
        finish(at);
      else
        trying.insert(std::upper_bound(trying.begin(), trying.end(), at), at);
    }
    const auto left = std::remove_if(trying.begin(), trying.end(), [&](uint32_t at) {
      Rank::slot().line.store(lines[at].number, std::memory_order_relaxed);
      if (!succeeds(lines[at])) return false;
      finish(at);
      return true;
    });
    trying.erase(left, trying.end());
    if (poll()) progress = true;
    while (first < own.size() && finished[first]) ++first;
    if (progress) {
      backoff.progressed();
      continue;
    }
    if (first < own.size()) show_where(trying, own[first]);
    const bool data = open_count_ > 0 || std::any_of(trying.begin(), trying.end(), [&](auto at) {
                        return lines[at].call == Call::kIsend || lines[at].call == Call::kIrecv;
                      });
    backoff.pause(!data);
  }
}

}  // namespace weft::ncclnet
