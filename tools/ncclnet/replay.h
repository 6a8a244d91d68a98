// SPDX-License-Identifier: Apache-2.0
//
// Replays one rank of a recorded run: one thread for each recorded thread. Strictly: the lines of
// each in order, and a line that names an object after the line before it that names the object.
// Relaxed: each line as soon as what trace_rules.h says it waits for has finished.
//
// isend and irecv are retried until they are taken; a `test` line means "poll until done". While a
// thread waits, for whatever reason, it goes on trying its pending connects and accepts and tests
// the oldest open request of each (comm, kind), as NCCL does; what is done early is remembered.
// The bytes of a message are filled in at its isend and checked as soon as its receive is done.
// Memory is given back right after its deregMr, and must stay as it is (freed_memory.h).
//
// Objects, buffers and requests are plain tables that lines fill in and later lines read; the
// dependencies (an atomic count of finished lines a thread, or RelaxedOrder) order these accesses.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tools/common/pattern.h"
#include "tools/ncclnet/arena.h"
#include "tools/ncclnet/freed_memory.h"
#include "tools/ncclnet/open_ranges.h"
#include "tools/ncclnet/rank.h"
#include "tools/ncclnet/relaxed_order.h"
#include "tools/ncclnet/trace.h"

namespace weft::ncclnet {

enum MeetingPoint : uint32_t { kCut, kTold, kTearDown, kMeetingPoints };

struct Replay {
  explicit Replay(Rank& r) : rank(r), freed(r.options().after_dereg) {}

  Rank& rank;
  Trace trace;
  const RankTrace* mine = nullptr;
  Arenas arenas;
  OpenRanges ranges;
  FreedMemory freed;

  // By id.
  std::vector<void*> contexts, listens, sends, recvs, mhandles;
  struct Request {
    void* handle = nullptr;
    bool done = false;
    int ranges[kMaxParts] = {};  // entries in `ranges`
  };
  std::vector<Request> requests;

  struct alignas(64) Finished {
    std::atomic<uint32_t> lines{0};
  };
  std::unique_ptr<Finished[]> finished;   // by thread
  std::unique_ptr<RelaxedOrder> relaxed;  // null: strict
  // Of a run that ends in the middle: how many threads have come to each point.
  std::array<std::atomic<size_t>, kMeetingPoints> arrived{};

  const TraceLine& region_of(int mhandle) const {
    return mine->lines[static_cast<size_t>(mine->mhandle_lines[static_cast<size_t>(mhandle)])];
  }
  unsigned char* address_of(const TracePart& part) const {
    return arenas.at(region_of(part.mhandle).base + part.offset);
  }
  std::string describe(int rank_index, int request) const;
};

class ReplayThread {
 public:
  ReplayThread(Replay& replay, uint32_t thread) : replay_(replay), thread_(thread) {}
  void run();

 private:
  struct Pending {  // a connect or accept that is being tried
    const TraceLine* line = nullptr;
    std::array<char, nccl::kHandleBytes> handle{};
    bool have_handle = false;
    void* comm = nullptr;
    DeviceHandle* device = nullptr;
  };
  using PendingList = std::vector<std::unique_ptr<Pending>>;
  struct Open {  // of one comm and kind, oldest first
    char comm_kind;
    int comm;
    Call call;
    std::deque<int> requests;
  };
  struct WaitingSend {  // which the recorded plugin never took
    const TraceLine* line;
    void* handle = nullptr;
    bool done = false;
  };

  // replay_thread.cc: strict order, and waiting.
  void run_strict();
  void run_lines(uint32_t from, uint32_t to);
  void wait_for(const Dependency& dependency);
  template <class Condition>
  void wait_until(const TraceLine& line, Condition condition);
  bool poll();
  bool poll_connections();
  bool poll_requests();
  PendingList::iterator pending_of(const TraceLine& line);
  void begin_attempt(const TraceLine& line);
  bool established(const TraceLine& line);
  void attempt(const TraceLine& line);
  std::deque<int>& open_of(const TraceLine& line);

  // replay_ending.cc: a run that ends in the middle.
  void end();
  void begin_waiting_send(const TraceLine& line);
  bool poll_waiting_sends();
  bool went_well(Call call, const TraceLine& post, nccl::Result result);
  bool told() const { return told_by_ != nullptr; }
  void meet(MeetingPoint point);
  void await_failure();
  void tear_down();

  // replay_relaxed.cc
  void run_relaxed();
  bool begin(const TraceLine& line);
  bool succeeds(const TraceLine& line);
  void show_where(const std::vector<uint32_t>& trying, uint32_t first_unfinished);

  // replay_calls.cc: one line, one call.
  void perform(const TraceLine& line);
  void set_up(const TraceLine& line);
  void register_memory(const TraceLine& line);
  void set_attributes(const TraceLine& line);
  void flush(const TraceLine& line);
  void close(const TraceLine& line);
  void posted(const TraceLine& line, void* handle);
  void*& comm(const TraceLine& line);

  // replay_data.cc
  void prepare_send(const TraceLine& line);
  bool try_send(const TraceLine& line);
  void prepare_receive(const TraceLine& line);
  bool try_receive(const TraceLine& line);

  // replay_check.cc: a completion.
  bool test_oldest(std::deque<int>& open);
  void completed(int request, const int* sizes, bool have_sizes);
  void received(const TraceLine& post, const RequestInfo& info, const int* sizes);
  void check_part(const TraceLine& post, const RequestInfo& info, size_t part, int size);
  [[noreturn]] void wrong(const TraceLine& post, const std::string& what);

  Replay& replay_;
  uint32_t thread_;
  PendingList pending_;
  std::vector<Open> open_;
  uint32_t open_count_ = 0;
  NetAttributes attributes_{};
  bool have_attributes_ = false;
  std::vector<WaitingSend> waiting_;
  bool at_cut_ = false;
  const TraceLine* told_by_ = nullptr;  // the post of the first call that said a peer is dead
  uint32_t calls_left_ = UINT32_MAX;    // that may still move data
};

void run_replay(Rank& rank);

}  // namespace weft::ncclnet
