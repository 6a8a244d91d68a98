// SPDX-License-Identifier: Apache-2.0
// Order and waiting of a replay: what a thread does between its lines. See replay.h.
#include <algorithm>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "tools/ncclnet/replay.h"

namespace weft::ncclnet {

void ReplayThread::run() {
  replay_.rank.use_slot(thread_, replay_.mine->thread_numbers[thread_]);
  ThreadSlot& slot = Rank::slot();
  if (replay_.relaxed != nullptr)
    run_relaxed();
  else
    run_strict();
  slot.doing.store(Doing::kFinished, std::memory_order_relaxed);
}

void ReplayThread::run_strict() {
  run_lines(0, replay_.mine->cut);
  if (replay_.trace.ending != Ending::kWhole) end();
}

// Of the thread's own lines those with an index in [from, to).
void ReplayThread::run_lines(uint32_t from, uint32_t to) {
  ThreadSlot& slot = Rank::slot();
  for (const uint32_t index : replay_.mine->threads[thread_]) {
    if (index < from || index >= to) continue;
    const TraceLine& line = replay_.mine->lines[index];
    slot.line.store(line.number, std::memory_order_relaxed);
    for (const Dependency& dependency : line.waits_for) wait_for(dependency);
    perform(line);
    replay_.finished[thread_].lines.store(line.position + 1, std::memory_order_release);
  }
}

void ReplayThread::wait_for(const Dependency& dependency) {
  const auto& finished = replay_.finished[dependency.thread].lines;
  auto reached = [&] { return finished.load(std::memory_order_acquire) > dependency.position; };
  if (reached()) return;
  ThreadSlot& slot = Rank::slot();
  const uint32_t awaited = replay_.mine->threads[dependency.thread][dependency.position];
  slot.awaited.store(replay_.mine->lines[awaited].number, std::memory_order_relaxed);
  slot.doing.store(Doing::kWaitingForLine, std::memory_order_relaxed);
  Backoff backoff;
  while (!reached()) {
    if (poll()) backoff.progressed();
    backoff.pause(open_count_ == 0);
  }
  slot.doing.store(Doing::kRunning, std::memory_order_relaxed);
}

template <class Condition>
void ReplayThread::wait_until(const TraceLine& line, Condition condition) {
  if (condition()) return;
  ThreadSlot& slot = Rank::slot();
  slot.doing.store(Doing::kPolling, std::memory_order_relaxed);
  // A send that is not taken yet is as urgent as a request that is open.
  const bool data = line.call == Call::kIsend || line.call == Call::kIrecv;
  Backoff backoff;
  do {
    if (poll()) backoff.progressed();
    backoff.pause(open_count_ == 0 && !data);
  } while (!condition());
  slot.doing.store(Doing::kRunning, std::memory_order_relaxed);
}

bool ReplayThread::poll() {
  const bool connected = !pending_.empty() && poll_connections();
  const bool taken = !waiting_.empty() && poll_waiting_sends();
  return (open_count_ > 0 && poll_requests()) || connected || taken;
}

bool ReplayThread::poll_connections() {
  const Api& api = replay_.rank.api();
  bool progress = false;
  for (const auto& pending : pending_) {
    if (pending->comm != nullptr) continue;
    const TraceLine& line = *pending->line;
    if (!pending->have_handle && line.call == Call::kConnect) {
      const auto handle = replay_.rank.channel().find(line.handle);
      if (!handle || handle->size() != pending->handle.size()) continue;
      std::memcpy(pending->handle.data(), handle->data(), handle->size());
      pending->have_handle = true;
    }
    // NCCL sets the attributes before every attempt.
    if (have_attributes_ && api.set_net_attr != nullptr && line.context >= 0) {
      replay_.rank.call(Call::kSetNetAttr, api.set_net_attr,
                        replay_.contexts[static_cast<size_t>(line.context)], &attributes_);
    }
    if (line.call == Call::kConnect) {
      replay_.rank.call(Call::kConnect, api.connect,
                        replay_.contexts[static_cast<size_t>(line.context)], line.device,
                        static_cast<void*>(pending->handle.data()), &pending->comm,
                        &pending->device);
    } else {
      replay_.rank.call(Call::kAccept, api.accept,
                        replay_.listens[static_cast<size_t>(line.listen)], &pending->comm,
                        &pending->device);
    }
    progress = progress || pending->comm != nullptr;
  }
  return progress;
}

bool ReplayThread::poll_requests() {
  bool progress = false;
  for (Open& open : open_) {
    if (calls_left_ == 0) break;
    if (!open.requests.empty() && test_oldest(open.requests)) progress = true;
  }
  return progress;
}

ReplayThread::PendingList::iterator ReplayThread::pending_of(const TraceLine& line) {
  return std::find_if(pending_.begin(), pending_.end(), [&](const auto& p) {
    return p->line->call == line.call && p->line->handle == line.handle &&
           p->line->listen == line.listen;
  });
}

void ReplayThread::begin_attempt(const TraceLine& line) {
  if (pending_of(line) != pending_.end()) return;
  pending_.push_back(std::make_unique<Pending>());
  pending_.back()->line = &line;
  poll_connections();
}

bool ReplayThread::established(const TraceLine& line) {
  const auto it = pending_of(line);
  if ((*it)->comm == nullptr) return false;
  comm(line) = (*it)->comm;
  pending_.erase(it);
  return true;
}

// A connect or accept line: begin to try, if that has not begun; with an output, wait for it.
void ReplayThread::attempt(const TraceLine& line) {
  begin_attempt(line);
  if (!line.null_output) wait_until(line, [&] { return established(line); });
}

std::deque<int>& ReplayThread::open_of(const TraceLine& line) {
  for (Open& open : open_) {
    if (open.comm == line.comm && open.comm_kind == line.comm_kind && open.call == line.call) {
      return open.requests;
    }
  }
  open_.push_back({line.comm_kind, line.comm, line.call, {}});
  return open_.back().requests;
}

void ReplayThread::perform(const TraceLine& line) {
  switch (line.call) {
    case Call::kConnect:
    case Call::kAccept: attempt(line); break;
    case Call::kRegMr:
    case Call::kRegMrDmaBuf: register_memory(line); break;
    case Call::kSetNetAttr: set_attributes(line); break;
    case Call::kIsend:
      if (line.abandoned) {
        begin_waiting_send(line);
        break;
      }
      prepare_send(line);
      wait_until(line, [&] { return try_send(line); });
      break;
    case Call::kIrecv:
      prepare_receive(line);
      wait_until(line, [&] { return try_receive(line); });
      break;
    case Call::kIflush: flush(line); break;
    case Call::kTest: {
      const Replay::Request& request = replay_.requests[static_cast<size_t>(line.request)];
      wait_until(line, [&] { return request.done; });
      break;
    }
    case Call::kDeregMr:
    case Call::kCloseSend:
    case Call::kCloseRecv:
    case Call::kCloseListen: close(line); break;
    default: set_up(line); break;
  }
}

}  // namespace weft::ncclnet
