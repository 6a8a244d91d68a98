// SPDX-License-Identifier: Apache-2.0
// Two hosts that exchange random messages over a simulated network, and a checker that believes
// nobody.
//
//   host 0  <== flows both ways, N paths ==>  host 1
//
// Every receive has a buffer of its own between guard bytes. When a receive is reported, its bytes
// are compared with what its sender put there and everything else in the buffer with what was there
// before; then the buffer is filled with poison, which must still be there at the end: a write
// after the release shows. When a send is reported, its source is overwritten: a read after the
// release shows, on the other side. Times are virtual and bounded.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "multipath/connection/matcher.h"
#include "tests/sim/pump.h"
#include "transport/base/random.h"
#include "transport/sim/network.h"

namespace weft::test {

struct Traffic {
  int flows = 4;      // in each direction
  int messages = 24;  // of a flow
  uint64_t largest = 96 << 10;
  bool grouped = true;  // receives of several parts, with tags
  Duration post_gap =
      microseconds(50);  // receives and sends are posted at random moments, so far apart
  uint32_t segment_bytes = 1408;
  uint64_t window_bytes = 256 << 10;
  std::string law = "nscc";
  std::string selector = "reps";
  Duration bound = seconds(20);  // everything must be over by then
};

struct Outcome {
  bool finished = false;
  std::string fault;  // empty: nothing wrong was seen
  uint64_t trace_hash = 0;
  Duration took{};
  uint64_t messages = 0, bytes = 0, retransmitted = 0, lost = 0;
  sim::SimCounters network;
};

class World {
 public:
  World(const sim::SimConfig& network, const Traffic& traffic, uint64_t seed);
  Outcome run();

 private:
  struct Buffer {
    std::vector<std::byte> memory;  // guard, room, guard
    uint64_t room = 0;
    bool released = false;
    std::byte* base() { return memory.data() + kGuard; }
  };
  struct Part {
    Buffer* buffer = nullptr;
    int32_t tag = 0;
    uint64_t sent_bytes = 0;  // what the matched send carried
    uint64_t pattern = 0;
  };
  struct PostedReceive {
    std::vector<Part> parts;
    bool reported = false;
  };
  struct PendingSend {
    Buffer* source = nullptr;
    uint64_t bytes = 0;
    int32_t tag = 0;
    uint64_t pattern = 0;
  };
  // One flow: sends at host `from`, receives at the other.
  struct Flow {
    int from = 0;
    FlowId id = 0;
    Matcher matcher;
    std::deque<PendingSend> to_send;
    std::vector<PostedReceive> to_receive;
    size_t receives_posted = 0, receives_done = 0, sends_done = 0, sends = 0;
    Time next_post, next_send;
  };
  static constexpr size_t kGuard = 256;

  void make_flow(int from);
  Buffer* make_buffer(int host, uint64_t room);
  void post_some(Time now);
  void send_some(Flow& flow, Time now);
  void on_event(int host, const Event& event);
  void check_received(PostedReceive& receive, const Event& event);
  void check_poison();
  void blame(const std::string& words);
  bool done() const;
  Time next_application_event() const;
  bool drive_until(Time limit, bool (World::*over)() const);
  bool both_quiet() const;

  Traffic traffic_;
  Random random_;
  sim::SimNetwork network_;
  std::array<std::unique_ptr<Pump>, 2> hosts_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::array<std::vector<std::unique_ptr<Buffer>>, 2> buffers_;
  std::vector<std::pair<Buffer*, std::pair<RegionId, MemoryKeys>>> region_of_[2];
  std::string fault_;
  uint64_t bytes_ = 0, messages_ = 0;
};

}  // namespace weft::test
