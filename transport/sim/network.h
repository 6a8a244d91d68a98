// SPDX-License-Identifier: Apache-2.0
// A simulated network between two hosts, each of which sees it as a Fabric: the heart of Weft's
// tests.
//
// It is a discrete-event simulation in virtual time. Posting draws what will happen to the packet
// (faults: config.h) and schedules it; advance_to() makes it happen and fills the inboxes that poll
// empties. The same configuration, seed and calls give the same events, which trace_hash() sums up.
//
// What it promises to a placing connection is what hardware promises and no more: a write's source
// is read some time before its completion; what lands was checked against keys; no write is
// duplicated; order is kept per path and epoch if ordered_path; and once kKilled is delivered,
// nothing of that epoch lands.
//
// Threading: one thread. Ownership: the network owns both fabrics; user memory that is registered
// must outlive it or be deregistered. Failure: misuse is counted in violations, with the first put
// in words.
//
//   harness                 engine of host 0          network            engine of host 1
//     advance_to(t) ------------------------------->  events up to t
//     drive ---------------> poll, post ----------->  draw, schedule
//     drive ------------------------------------------------------------> poll, post
//     t = earlier(next_event(), the engines' own deadlines)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/base/pool.h"
#include "transport/base/random.h"
#include "transport/base/units.h"
#include "transport/fabric.h"
#include "transport/memory.h"
#include "transport/sim/config.h"
#include "transport/sim/event_queue.h"
#include "transport/sim/host.h"
#include "transport/sim/weather.h"

namespace weft::sim {

class SimFabric;

class SimNetwork {
 public:
  // Values of the configuration that make no sense are clamped. Datagrams are placed through
  // `memory`, which must outlive the network; null: host memory.
  SimNetwork(const SimConfig& config, uint64_t seed, Memory* memory = nullptr);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // 0 or 1.
  Fabric& host(int number);

  Time now() const { return now_; }
  // When something happens next by itself; never() if nothing is under way.
  Time next_event() const { return queue_.next(); }
  // Makes everything happen that is due up to `time`, which then is now.
  void advance_to(Time time);
  // How much poll would find at a host, pauses aside.
  size_t pending(int number) const;
  bool paused(int number) const { return weather_.paused(number, now_); }
  size_t in_flight() const { return packets_.in_use(); }

  uint64_t trace_hash() const { return hash_; }
  const SimCounters& counters() const { return counters_; }
  const std::string& first_violation() const { return first_violation_; }
  const SimConfig& config() const { return config_; }

  // For SimFabric: what the hosts do. `from` is a host's number.
  Host& state(int number) { return hosts_[static_cast<size_t>(number)]; }
  Memory& memory() { return *memory_; }
  Random& random() { return random_; }
  // How many of a batch of posts the NIC takes now.
  size_t admit(size_t batch);
  void post_datagram(int from, Time now, const SegmentPost& post);
  void post_write(int from, Time now, const SegmentPost& post);
  void post_control(int from, Time now, const ControlPost& post);
  void kill_path(int from, LinkId link, PathIndex path, uint32_t epoch);
  void reopen_path(int from, LinkId link, PathIndex path, uint32_t epoch);
  void close_link(int from, LinkId link);
  void drop_holder(Packet& packet);
  void violation(int host, const char* what);

 private:
  struct Chances {
    double loss, duplicate, reorder;
  };

  void happen(const Event& event);
  void arrive(Packet& packet);
  void read_source(Packet& packet);
  void complete(Packet& packet);
  void land(Packet& packet);
  void carry_out_kill(const Event& event);
  void break_path(const Event& event);
  // Ends all posts of a host on an epoch: what was not read never will be, and everything is
  // completed.
  void flush(int from, LinkId link, PathIndex path, uint32_t epoch, bool report);

  Packet* take_packet(int from, LinkId link, PathIndex path);
  void schedule(Time at, EventKind kind, Packet& packet);
  void send_datagram(Packet& packet, const Chances& chances);
  void draw_write(Packet& packet, PathEnd& path);
  Time draw_arrival(const Packet& packet, const PathEnd& path, Time departure);
  void draw_loss(Packet& packet, Time departure);
  void mix(uint64_t value);

  SimConfig config_;
  Random random_;
  Weather weather_;
  HostMemory host_memory_;
  Memory* memory_;
  std::array<Host, 2> hosts_;
  std::array<std::unique_ptr<SimFabric>, 2> fabrics_;
  Pool<Packet, kMaxPackets, 256> packets_;
  // Every packet that is in use, for flush, which is rare.
  std::vector<Packet*> all_packets_;
  EventQueue queue_;
  uint64_t posted_ = 0;
  Time now_;
  uint64_t hash_ = 0xcbf29ce484222325u;
  SimCounters counters_;
  std::string first_violation_;
};

}  // namespace weft::sim
