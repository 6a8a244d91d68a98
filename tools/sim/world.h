// SPDX-License-Identifier: Apache-2.0
// The hosts of a run, their connections and transfers: what run.cc drives and setup.cc makes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/sim/run.h"

namespace weft::simtool {

inline constexpr uint64_t kHelloBytes = 64;

struct Endpoint : sim::Actor {
  sim::Cluster* cluster = nullptr;
  std::unique_ptr<Engine> engine;
  std::vector<size_t> sending;    // transfers that are under way
  Time awake_at = Time::never();  // a wake-up is under way, for then
  std::function<void(Time)> after;

  // Once at this time, however many ask for it.
  void wake_at(Time time) {
    if (awake_at <= time) return;
    awake_at = time;
    cluster->scheduler().at(time, *this);
  }
  void wake(Time now, void*) override {
    if (now < awake_at) return;  // one for an earlier time has been here
    awake_at = Time::never();
    drive(now);
  }
  void drive(Time now) {
    engine->progress(now);
    if (after) after(now);
    const Time next = engine->poll_timeout();
    if (next != Time::never()) wake_at(std::max(next, now + nanoseconds(1)));
  }
};

struct Pair {  // a connection, its two ends
  Member* member[2] = {};
  uint32_t host[2] = {};
};

struct Lane {  // of one transfer
  Pair* pair = nullptr;
  std::unique_ptr<SendFlow> send;
  std::unique_ptr<ReceiveFlow> receive;
  std::vector<std::byte> source, sink;
  Registration source_region, sink_region;
  Request* sent = nullptr;
  Request* received = nullptr;
  bool begun = false;
};

class Run {
 public:
  explicit Run(const RunConfig& config) : config_(config) {}
  RunResult go();

 private:
  bool set_up();
  uint32_t fitting_segment() const;
  Pair* connect(uint32_t a, uint32_t b);
  ConnectionConfig connection_config(Fabric& fabric, LinkId link, const Member& peer);
  bool open(const Transfer& transfer, Lane& lane);
  bool say_hello();
  bool add_faults();
  bool begin(size_t index, Time now);
  void finished(uint32_t host, Time now);
  bool until(const std::function<bool()>& over, Time limit);
  void check(size_t index);
  void fault(const std::string& words) {
    if (result_.fault.empty()) result_.fault = words;
  }

  const RunConfig& config_;
  std::unique_ptr<sim::Cluster> cluster_;
  std::vector<std::unique_ptr<Endpoint>> hosts_;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<Pair>> pairs_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::byte> shared_;  // where nothing is carried, all read and write here
  Time begin_;
  size_t left_ = 0;
  uint32_t burst_ = 0;  // what takes one path: of writes a segment, of datagrams several
  RunResult result_;
};

}  // namespace weft::simtool
