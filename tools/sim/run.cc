// SPDX-License-Identifier: Apache-2.0
// Transfers, and the clock; see run.h.
#include "tools/sim/run.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/common/pattern.h"
#include "tools/sim/world.h"

namespace weft::simtool {

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
  for (const sim::Topology::Cable& cable : cluster_->topology().cables)
    result_.dropped += cable.port->counters().dropped;
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

RunResult run(const RunConfig& config) { return Run(config).go(); }

}  // namespace weft::simtool
