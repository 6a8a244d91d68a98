// SPDX-License-Identifier: Apache-2.0
// Hosts, their transfers, and the clock; see run.h.
#include "tools/sim/run.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tools/common/pattern.h"

namespace weft::simtool {
namespace {

constexpr uint64_t kHelloBytes = 64;

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

// What a fabric of hardware's speed wants; the same for all scenarios.
ConnectionConfig Run::connection_config(Fabric& fabric, LinkId link, const Member& peer) {
  ConnectionConfig c;
  c.offloads = fabric.offloads();
  c.peer = peer.own;
  c.paths = fabric.paths(link);
  c.segment_bytes = c.peer_segment_bytes = fabric.max_segment_bytes();
  c.burst_bytes = std::max(burst_, c.segment_bytes);
  c.window_bytes = 2 << 20;
  c.law = config_.law;
  c.selector = config_.selector;
  c.port_bytes_per_second = fabric.speed_mbps() * (1e6 / 8);
  c.noise_floor = nanoseconds(250);
  c.timer_floor = microseconds(20);
  c.max_hold = microseconds(2);
  c.initial_rtt = microseconds(20);
  c.seed = cluster_->random().next();
  return c;
}

Pair* Run::connect(uint32_t a, uint32_t b) {
  const auto key = std::minmax(a, b);
  auto& pair = pairs_[key];
  if (pair) return pair.get();
  pair = std::make_unique<Pair>();
  LinkAddress address[2];
  LinkId link[2] = {};
  for (int i = 0; i < 2; ++i) {
    pair->host[i] = i == 0 ? key.first : key.second;
    pair->member[i] = hosts_[pair->host[i]]->engine->reserve(cluster_->random().next());
    link[i] = *cluster_->host(pair->host[i]).create_link(&address[i]);
  }
  for (int i = 0; i < 2; ++i) {
    Fabric& fabric = cluster_->host(pair->host[i]);
    const Status status = fabric.connect_link(link[i], address[1 - i]);
    if (!status.ok()) fault(status.words());
    hosts_[pair->host[i]]->engine->attach(*pair->member[i], link[i],
                                          connection_config(fabric, link[i], *pair->member[1 - i]));
  }
  return pair.get();
}

bool Run::open(const Transfer& t, Lane& lane) {
  lane.pair = connect(t.from, t.to);
  Member& from = *lane.pair->member[lane.pair->host[0] == t.from ? 0 : 1];
  Member& to = *lane.pair->member[lane.pair->host[0] == t.from ? 1 : 0];
  lane.receive = hosts_[t.to]->engine->open_receive_flow(to);
  if (lane.receive) lane.send = hosts_[t.from]->engine->open_send_flow(from, lane.receive->id());
  if (!lane.send) return false;
  const uint64_t bytes = std::max(t.bytes, kHelloBytes);
  std::vector<std::byte>* source = &shared_;
  std::vector<std::byte>* sink = &shared_;
  if (config_.cluster.carry) {
    lane.source.resize(bytes);
    lane.sink.resize(bytes);
    source = &lane.source, sink = &lane.sink;
  } else if (shared_.size() < bytes) {
    return false;
  }
  return hosts_[t.from]
             ->engine->register_memory(from, {source->data(), bytes}, &lane.source_region)
             .ok() &&
         hosts_[t.to]->engine->register_memory(to, {sink->data(), bytes}, &lane.sink_region).ok();
}

// So that some tens of segments are under way: with few, paths take turns too coarsely, with many,
// each costs more than it carries. A network's length is taken from what cables make of it.
uint32_t Run::fitting_segment() const {
  constexpr double kSegmentsUnderWay = 40;
  constexpr int kCables = 12;  // there and back, three tiers
  const sim::PortConfig& cable = config_.cluster.topology.cable;
  const double pipe =
      static_cast<double>(cable.bits_per_second) / 8 * cable.delay.seconds() * kCables;
  uint32_t segment = config_.cluster.packet_bytes;
  while (segment < 65536 && segment * kSegmentsUnderWay * 1.5 < pipe) segment *= 2;
  return segment;
}

bool Run::set_up() {
  std::string why;
  sim::ClusterConfig cluster = config_.cluster;
  burst_ = config_.segment_bytes != 0 ? config_.segment_bytes : fitting_segment();
  cluster.max_segment_bytes = burst_;
  cluster_ = std::make_unique<sim::Cluster>(cluster, config_.seed, &why);
  if (!why.empty()) {
    fault(why);
    return false;
  }
  uint64_t most = kHelloBytes;
  for (const Transfer& t : config_.transfers) most = std::max(most, t.bytes);
  if (!config_.cluster.carry) shared_.resize(most);
  for (uint32_t h = 0; h < cluster_->hosts(); ++h) {
    hosts_.push_back(std::make_unique<Endpoint>());
    hosts_[h]->cluster = cluster_.get();
    hosts_[h]->engine = std::make_unique<Engine>(cluster_->host(h));
    hosts_[h]->after = [this, h](Time now) { finished(h, now); };
  }
  cluster_->on_look = [this](uint32_t host, Time now) { hosts_[host]->wake_at(now); };
  for (const Transfer& t : config_.transfers) {
    lanes_.push_back(std::make_unique<Lane>());
    if (!open(t, *lanes_.back())) {
      fault(fmt::format("a flow from {} to {} cannot be opened", t.from, t.to));
      return false;
    }
  }
  return true;
}

bool Run::until(const std::function<bool()>& over, Time limit) {
  sim::Scheduler& scheduler = cluster_->scheduler();
  while (!over()) {
    if (scheduler.next() > limit) return false;
    scheduler.step();
  }
  return true;
}

// A small message on every flow, one after the other; and the receives of what comes.
bool Run::say_hello() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    const Transfer& t = config_.transfers[i];
    Endpoint& from = *hosts_[t.from];
    Endpoint& to = *hosts_[t.to];
    std::byte* sink = config_.cluster.carry ? lane.sink.data() : shared_.data();
    std::byte* source = config_.cluster.carry ? lane.source.data() : shared_.data();
    Request* received = nullptr;
    Request* sent = nullptr;
    const ReceiveBuffer hello{sink, kHelloBytes, 0, &lane.sink_region};
    if (lane.receive->receive({&hello, 1}, &received) != Answer::kPosted) return false;
    to.drive(cluster_->scheduler().now());
    const auto over = [&] {
      if (!sent &&
          lane.send->send(source, kHelloBytes, 0, &lane.source_region, &sent) == Answer::kPosted)
        from.wake_at(cluster_->scheduler().now());
      return sent && sent->state.load() == Request::State::kDone &&
             received->state.load() == Request::State::kDone;
    };
    if (!until(over, cluster_->scheduler().now() + milliseconds(50))) return false;
    lane.send->release(*sent);
    lane.receive->release(*received);
    const ReceiveBuffer all{sink, t.bytes, 0, &lane.sink_region};
    if (lane.receive->receive({&all, 1}, &lane.received) != Answer::kPosted) return false;
    to.drive(cluster_->scheduler().now());
    if (config_.cluster.carry)
      tools::fill_pattern(lane.source.data(), t.bytes, tools::pattern_seed(t.from, i));
  }
  // Until the last grants are there and confirmed.
  until([] { return false; }, cluster_->scheduler().now() + milliseconds(1));
  cluster_->scheduler().advance_to(cluster_->scheduler().now() + milliseconds(1));
  return true;
}

bool Run::add_faults() {
  for (const NamedFault& named : config_.faults) {
    sim::Port* port = cluster_->topology().cable(named.cable);
    if (!port) {
      fault(fmt::format("no cable is called '{}'", named.cable));
      return false;
    }
    sim::CableFault fault = named.fault;
    fault.from = begin_ + (fault.from - Time{});
    if (fault.until != Time::never()) fault.until = begin_ + (fault.until - Time{});
    port->add_fault(fault);
  }
  return true;
}

bool Run::begin(size_t index, Time now) {
  Lane& lane = *lanes_[index];
  const Transfer& t = config_.transfers[index];
  std::byte* source = config_.cluster.carry ? lane.source.data() : shared_.data();
  if (lane.send->send(source, t.bytes, 0, &lane.source_region, &lane.sent) != Answer::kPosted)
    return false;
  lane.begun = true;
  hosts_[t.from]->sending.push_back(index);
  hosts_[t.from]->wake_at(now);
  return true;
}

void Run::finished(uint32_t host, Time now) {
  std::vector<size_t>& sending = hosts_[host]->sending;
  std::erase_if(sending, [&](size_t index) {
    const auto state = lanes_[index]->sent->state.load();
    if (state == Request::State::kPending) return false;
    --left_;
    if (state == Request::State::kFailed) {
      fault(fmt::format("transfer {} failed: {}", index, describe(lanes_[index]->sent->failure)));
      return true;
    }
    result_.transfers[index] = {true, now - (begin_ + (config_.transfers[index].start - Time{}))};
    return true;
  });
}

void Run::check(size_t index) {
  const Lane& lane = *lanes_[index];
  const Transfer& t = config_.transfers[index];
  const uint64_t seed = tools::pattern_seed(t.from, index);
  if (!tools::check_pattern(lane.sink.data(), t.bytes, seed)) return;
  fault(fmt::format("transfer {} from {} to {}: {}", index, t.from, t.to,
                    tools::describe_wrong_bytes(lane.sink.data(), t.bytes, seed, "it", {})));
}

RunResult Run::go() {
  if (!set_up()) return result_;
  if (!say_hello()) {
    fault("the first small messages did not get through");
    return result_;
  }
  sim::Scheduler& scheduler = cluster_->scheduler();
  begin_ = scheduler.now();
  if (!add_faults()) return result_;
  left_ = lanes_.size();
  result_.transfers.resize(lanes_.size());
  std::vector<size_t> order(lanes_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return config_.transfers[a].start < config_.transfers[b].start;
  });
  for (const size_t i : order) {
    const Time start = begin_ + (config_.transfers[i].start - Time{});
    while (scheduler.next() < start) scheduler.step();
    scheduler.advance_to(start);
    if (!begin(i, start)) fault(fmt::format("transfer {} found no grant", i));
  }
  if (result_.fault.empty() && !until([this] { return left_ == 0; }, begin_ + config_.limit)) {
    fault(fmt::format("{} of {} transfers were not done after {} us", left_, lanes_.size(),
                      config_.limit.ns / 1000));
  }
  result_.frames = cluster_->counters().frames;
  result_.events = scheduler.happened();
  result_.trace_hash = cluster_->trace_hash();
  for (const auto& [hosts, pair] : pairs_) {
    for (Member* member : pair->member) {
      result_.lost += member->connection->segments_lost();
      result_.retransmitted += member->connection->segments_retransmitted();
    }
  }
  result_.fastest = seconds(1000);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (!result_.transfers[i].done) continue;
    result_.slowest = std::max(result_.slowest, result_.transfers[i].took);
    result_.fastest = std::min(result_.fastest, result_.transfers[i].took);
    if (config_.cluster.carry) check(i);
  }
  if (cluster_->counters().violations != 0) fault(cluster_->counters().first_violation);
  for (const auto& lane : lanes_) {
    hosts_[lane->pair->host[0]]->engine->close_flow(*lane->send);
  }
  return result_;
}

}  // namespace

RunResult run(const RunConfig& config) { return Run(config).go(); }

}  // namespace weft::simtool
