// SPDX-License-Identifier: Apache-2.0
// What all modes of a rank share; see rank.h.
#include "tools/ncclnet/rank.h"

#include <sched.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "tools/common/fd.h"
#include "tools/ncclnet/allreduce.h"
#include "tools/ncclnet/latency.h"
#include "tools/ncclnet/replay.h"
#include "tools/ncclnet/stream.h"

namespace weft::ncclnet {
namespace {

// For the logger, which gets no pointer of ours.
uint32_t log_rank = 0;
bool log_all = false;

const char* level_name(nccl::LogLevel level) {
  switch (level) {
    case nccl::kLogWarn: return "WARN";
    case nccl::kLogInfo: return "INFO";
    case nccl::kLogAbort: return "ABORT";
    case nccl::kLogTrace: return "TRACE";
    default: return "LOG";
  }
}

// One write, so that lines of different ranks do not mix.
__attribute__((format(printf, 5, 6))) void log_line(nccl::LogLevel level, unsigned long /*flags*/,
                                                    const char* file, int line, const char* format,
                                                    ...) {
  const bool warns = level == nccl::kLogWarn || level == nccl::kLogAbort;
  if (!log_all && !warns) return;
  char text[2048];
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const int start =
      std::snprintf(text, sizeof text, "%srank %u: plugin %s %s:%d ", terminal ? "\r\033[K" : "",
                    log_rank, level_name(level), file != nullptr ? file : "?", line);
  if (start < 0 || start >= static_cast<int>(sizeof text) - 1) return;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text + start, sizeof text - static_cast<size_t>(start) - 1, format, arguments);
  va_end(arguments);
  std::strcat(text, "\n");
  (void)!::write(STDERR_FILENO, text, std::strlen(text));
}

nccl::Result profile(void** handle, int, void*, int64_t, void*) {
  if (handle != nullptr) *handle = nullptr;
  return nccl::kSuccess;
}

}  // namespace

thread_local ThreadSlot* Rank::slot_ = nullptr;

Rank::Rank(const Options& options, uint32_t index, uint32_t count, Board* board)
    : options_(options), index_(index), count_(count), board_(board), channel_(kChannelFd) {
  log_rank = index;
  log_all = options.verbose;
}

void Rank::use_slot(uint32_t slot, uint32_t thread_number) {
  slot_ = &board_->threads[slot < kMaxThreads ? slot : kMaxThreads - 1];
  slot_->number.store(thread_number, std::memory_order_relaxed);
  slot_->doing.store(Doing::kRunning, std::memory_order_relaxed);
}

std::string Rank::place() {
  if (slot_ == nullptr) return {};
  const uint32_t line = slot_->line.load(std::memory_order_relaxed);
  return line == 0 ? std::string() : fmt::format("thread {} line {}: ", slot_->number.load(), line);
}

void Rank::load() {
  slot().inside.store(Call::kLoad, std::memory_order_relaxed);
  const std::string why = plugin_.open(options_.plugin, options_.api);
  slot().inside.store(Call::kNone, std::memory_order_relaxed);
  if (!why.empty()) fail(tools::kFailed, why);
}

int Rank::finish() {
  const int version = plugin_.version();
  slot().inside.store(Call::kUnload, std::memory_order_relaxed);
  plugin_.close();
  slot().inside.store(Call::kNone, std::memory_order_relaxed);
  channel_.verdict(tools::kGood, static_cast<uint64_t>(version), {});
  return tools::kGood;
}

void Rank::fail(tools::ExitCode code, const std::string& why) {
  if (failed_.exchange(true)) {
    for (;;) ::pause();  // another thread is just ending the process
  }
  channel_.verdict(code, 0, why);
  ::_exit(code);
}

void Rank::fail_call(Call id, nccl::Result result) {
  fail(tools::kFailed,
       fmt::format("{}the plugin's {} returned {}", place(), name_of(id), describe(result)));
}

void Rank::parent_is_gone() { ::_exit(tools::kFailed); }

nccl::Logger Rank::logger() { return &log_line; }
nccl::ProfilerCallback Rank::profiler() { return &profile; }

void* Rank::profile_handle() {
  static uint64_t handle[8];
  return handle;
}

void Rank::data_begins() {
  if (board_->first_data_ns.load(std::memory_order_relaxed) != 0) return;
  int64_t none = 0;
  board_->first_data_ns.compare_exchange_strong(none, tools::now_ns());
}

void Rank::data_arrived(uint64_t bytes, uint64_t messages) {
  board_->bytes.fetch_add(bytes, std::memory_order_relaxed);
  board_->messages.fetch_add(messages, std::memory_order_relaxed);
  const int64_t now = tools::now_ns();
  board_->last_data_ns.store(now, std::memory_order_relaxed);
  slot().moved_ns.store(now, std::memory_order_relaxed);
}

void Backoff::pause(bool may_sleep) {
  constexpr uint32_t kSpins = 16;
  constexpr uint32_t kYields = 200;
  ++idle_;
  if (idle_ < kSpins) return;
  if (!may_sleep || idle_ < kYields) {
    ::sched_yield();
    return;
  }
  // 20 us at first, 1 ms at most: nobody hurries a thread that has nothing open.
  const uint32_t over = idle_ - kYields;
  const timespec nap{0, over > 100 ? 1000000 : 20000 + 9800 * static_cast<long>(over)};
  ::nanosleep(&nap, nullptr);
}

int run_rank(const Options& options, uint32_t index, uint32_t count) {
  tools::Mapping memory(kBoardFd, sizeof(Board));
  if (memory.data() == nullptr) return tools::kFailed;
  Rank rank(options, index, count, static_cast<Board*>(memory.data()));
  rank.use_slot(0, 0);
  rank.load();
  switch (options.mode) {
    case Mode::kReplay: run_replay(rank); break;
    case Mode::kCheck: break;  // has no ranks
    case Mode::kAllreduce: run_allreduce(rank); break;
    case Mode::kStream: run_stream(rank); break;
    case Mode::kLatency: run_latency(rank); break;
  }
  return rank.finish();
}

}  // namespace weft::ncclnet
