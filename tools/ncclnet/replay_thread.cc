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
  for (const uint32_t index : replay_.mine->threads[thread_]) {
    const TraceLine& line = replay_.mine->lines[index];
    slot.line.store(line.number, std::memory_order_relaxed);
    for (const Dependency& dependency : line.waits_for) wait_for(dependency);
    perform(line);
    replay_.finished[thread_].lines.store(line.position + 1, std::memory_order_release);
  }
  slot.doing.store(Doing::kFinished, std::memory_order_relaxed);
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
  return (open_count_ > 0 && poll_requests()) || connected;
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
    if (!open.requests.empty() && test_oldest(open.requests)) progress = true;
  }
  return progress;
}

// A connect or accept line: begin to try, if that has not begun; with an output, wait for it.
void ReplayThread::attempt(const TraceLine& line) {
  auto same = [&](const std::unique_ptr<Pending>& p) {
    return p->line->call == line.call && p->line->handle == line.handle &&
           p->line->listen == line.listen;
  };
  auto it = std::find_if(pending_.begin(), pending_.end(), same);
  if (it == pending_.end()) {
    pending_.push_back(std::make_unique<Pending>());
    pending_.back()->line = &line;
    poll_connections();
    it = std::prev(pending_.end());
  }
  if (line.null_output) return;
  Pending& pending = **it;
  wait_until(line, [&] { return pending.comm != nullptr; });
  comm(line) = pending.comm;
  pending_.erase(std::find_if(pending_.begin(), pending_.end(), same));
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
    case Call::kIsend: send(line); break;
    case Call::kIrecv: receive(line); break;
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

void ReplayThread::send(const TraceLine& line) {
  Rank& rank = replay_.rank;
  const TracePart& part = line.parts[0];
  unsigned char* at = replay_.address_of(part);
  Replay::Request& request = replay_.requests[static_cast<size_t>(line.request)];
  request.ranges[0] = replay_.ranges.open(at, part.size, 0, 0);
  tools::fill_pattern(at, part.size,
                      tools::pattern_seed(rank.index(), static_cast<uint64_t>(line.request)));
  rank.data_begins();
  void* handle = nullptr;
  wait_until(line, [&] {
    rank.call(Call::kIsend, rank.api().isend, comm(line), static_cast<void*>(at), part.size,
              part.tag, replay_.mhandles[static_cast<size_t>(part.mhandle)], Rank::profile_handle(),
              &handle);
    return handle != nullptr;
  });
  posted(line, handle);
}

void ReplayThread::receive(const TraceLine& line) {
  constexpr size_t kGuardBytes = 64;
  Rank& rank = replay_.rank;
  void* data[kMaxParts];
  void* mhandles[kMaxParts];
  void* profiles[kMaxParts];
  size_t sizes[kMaxParts];
  int tags[kMaxParts];
  const size_t count = line.parts.size();
  Replay::Request& request = replay_.requests[static_cast<size_t>(line.request)];
  const RequestInfo& info = replay_.mine->requests[static_cast<size_t>(line.request)];
  for (size_t i = 0; i < count; ++i) {
    const TracePart& part = line.parts[i];
    unsigned char* at = replay_.address_of(part);
    data[i] = at;
    mhandles[i] = replay_.mhandles[static_cast<size_t>(part.mhandle)];
    profiles[i] = Rank::profile_handle();
    sizes[i] = part.size;
    tags[i] = part.tag;
    const size_t comes = i < info.sources.size() ? info.sources[i].size : part.size;
    request.ranges[i] =
        replay_.ranges.open(at, part.size, comes, std::min(part.size - comes, kGuardBytes));
  }
  rank.data_begins();
  void* handle = nullptr;
  wait_until(line, [&] {
    handle = line.optional ? WEFT_NCCL_OPTIONAL_RECV_COMPLETION : nullptr;
    rank.call(Call::kIrecv, rank.api().irecv, comm(line), static_cast<int>(count), data, sizes,
              tags, mhandles, profiles, &handle);
    return handle != nullptr;
  });
  if (handle == WEFT_NCCL_OPTIONAL_RECV_COMPLETION) {
    rank.fail(tools::kFailed, fmt::format("{}irecv left the optional-completion hint in *request; "
                                          "it must write a request or null",
                                          Rank::place()));
  }
  posted(line, handle);
}

}  // namespace weft::ncclnet
