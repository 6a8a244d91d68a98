// SPDX-License-Identifier: Apache-2.0
// Making the hosts of a run, their connections, flows and memory; see world.h.
#include <algorithm>

#include <fmt/format.h>

#include "tools/sim/world.h"

namespace weft::simtool {

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

}  // namespace weft::simtool
