// SPDX-License-Identifier: Apache-2.0
// The calls of a Connection: each goes to the part it concerns (connection_parts.h), and what
// follows from it is looked after before it returns.
#include "multipath/connection/connection.h"

#include <algorithm>

#include "multipath/connection/connection_parts.h"

namespace weft {
namespace {

constexpr Duration kLastRepeat = milliseconds(10);
constexpr Duration kLongPoll = milliseconds(1);  // a longer gap makes RTT samples upper bounds

std::string in_words(const TrafficHints& hints) {
  if (hints == TrafficHints{}) return "";
  return ", last hint: operations " + std::to_string(hints.operations) + ", " +
         std::to_string(hints.peers) + " peers, " + std::to_string(hints.flows_per_peer) +
         " flows a peer" + (hints.latency_bound ? ", latency-bound" : "");
}

}  // namespace

Connection::Connection(const ConnectionConfig& config) : parts_(std::make_unique<Parts>(config)) {}
Connection::~Connection() = default;

bool Connection::open_receive_flow(FlowId* id) { return parts_->receiver.open_flow(id); }
bool Connection::open_send_flow(FlowId id) { return parts_->sender.open_flow(id); }
void Connection::close_send_flow(FlowId id) { parts_->sender.close_flow(id); }
void Connection::close_receive_flow(FlowId id) { parts_->kill_if(parts_->receiver.close_flow(id)); }

bool Connection::add_region(std::byte* base, uint64_t bytes, std::span<const uint64_t> keys,
                            RegionId* id) {
  return parts_->regions.add(base, bytes, keys, id);
}

void Connection::remove_region(RegionId id) {
  parts_->sender.region_removed(id);
  parts_->kill_if(parts_->receiver.region_removed(id));
  parts_->regions.remove(id);
}

bool Connection::post_receive(FlowId flow, std::span<const ReceivePart> parts, Token token) {
  return parts_->receiver.post(flow, parts, token);
}
bool Connection::post_send(const MatchedSend& send) { return parts_->sender.post(send); }

void Connection::handle_poll_gap(Duration gap) {
  parts_->poll_gap = std::max(parts_->poll_gap, gap);
}

void Connection::handle_control(Time now, std::span<const std::byte> datagram) {
  wire::ControlHeader header;
  if (!wire::decode_control(datagram, &header)) return;
  Parts& p = *parts_;
  p.liveness.heard(now);
  p.report = {now, header.stamp, nanoseconds(header.poll_gap_ns) > kLongPoll};
  wire::read_statements(datagram.subspan(wire::kControlHeaderBytes), p);
  p.sender.after_reports(now);
}

void Connection::handle_statements(Time now, std::span<const std::byte> statements) {
  Parts& p = *parts_;
  p.report = {now, p.report.stamp, true};
  wire::read_statements(statements, p);
  p.sender.after_reports(now);
}

void Connection::handle_probe(Time now, const wire::ProbeHeader& probe, bool marked) {
  parts_->liveness.heard(now);
  parts_->receiver.on_probe(now, probe, marked);
}

std::byte* Connection::claim(Time now, const wire::DataHeader& header) {
  return parts_->receiver.claim(now, header);
}

void Connection::handle_arrival(Time now, const wire::DataHeader& header, bool marked) {
  parts_->liveness.heard(now);
  parts_->receiver.on_arrival(now, header, marked);
}

void Connection::handle_landing(Time now, PathIndex path, uint32_t epoch, uint32_t immediate,
                                uint32_t bytes) {
  parts_->liveness.heard(now);
  parts_->receiver.on_landing(now, path, epoch, immediate, bytes);
}

void Connection::handle_path_killed(Time now, PathIndex path, uint32_t epoch) {
  parts_->kill.on_killed_here(now, path, epoch);
  parts_->sender.settle_touched();
}

void Connection::handle_path_broken(Time, PathIndex path, uint32_t epoch) {
  auto& paths = parts_->sender.ledger().paths();
  if (path < paths.size() && paths[path].epoch == epoch) parts_->kill.start(paths[path]);
}

void Connection::handle_completion(uint64_t cookie) {
  parts_->sender.handle_completion(cookie);
  parts_->sender.settle_touched();
}

void Connection::handle_refused(std::span<const SegmentPost> posts) {
  // From the last to the first, so that what was never sent goes back in order.
  for (size_t i = posts.size(); i-- > 0;) parts_->sender.handle_refused(posts[i]);
  parts_->sender.settle_touched();
}

void Connection::handle_peer_hint(Time now) { parts_->liveness.ask_at_once(now); }

void Connection::handle_wanted(Time now) { parts_->liveness.want(now); }

void Connection::handle_peer_gone(Time) { parts_->fail_all(Failure::kPeerClosed); }

void Connection::handle_timeout(Time now) {
  Parts& p = *parts_;
  if (p.failed) return;
  p.liveness.polled(now);
  if (p.liveness.dead(now)) return p.fail_all(Failure::kPeerSilent);
  if (p.liveness.ping_due(now)) {
    p.ping_wanted = true;
    p.liveness.pinged();
  }
  p.sender.ledger().on_deadline(now, p.liveness.last_heard());
  p.sender.settle_touched();
  if (p.repeat_at <= now) {
    p.regions.repeat();
    p.sender.repeat();
    p.receiver.repeat();
    p.kill.repeat();
    p.repeat_every = std::min(p.repeat_every * 3 / 2, kLastRepeat);
    p.repeat_at = now + p.repeat_every;
  }
}

void Connection::poll_transmit(Time now, Outbox& out) {
  Parts& p = *parts_;
  out.clear();
  p.take_kills();
  p.kill.take_commands(out);
  if (p.failed) return p.receiver.acks_left();
  p.liveness.expect(p.waits_for_peer(), now);
  p.receiver.start_holds(now);
  // Data first decides which records are due; control goes out first all the same, being posted
  // first.
  p.sender.transmit(now, out);
  if (p.transmit_control(now, out)) p.receiver.acks_left();
  p.schedule_repeat(now);
}

Time Connection::poll_timeout() const {
  const Parts& p = *parts_;
  if (p.failed) return Time::never();
  Time at = earlier(p.sender.ledger().deadline(), p.repeat_at);
  at = earlier(at, p.receiver.deadline());
  at = earlier(at, p.sender.seen_deadline());
  if (p.sender.statements_due(Time{INT64_MIN}) || p.kill.due() || p.regions.due())
    at = Time{INT64_MIN};
  return earlier(at, p.liveness.deadline());
}

bool Connection::poll_event(Event* event) {
  return parts_->sender.poll_event(event) || parts_->receiver.poll_event(event);
}

std::vector<std::vector<std::byte>> Connection::last_word() const {
  std::vector<wire::FlowState> states;
  parts_->receiver.add_last_word(&states);
  parts_->sender.add_last_word(&states);
  std::vector<std::vector<std::byte>> chunks;
  std::array<std::byte, kMaxControlBytes> packet;
  size_t at = 0;
  while (at < states.size()) {
    wire::ControlWriter writer(packet);
    while (at < states.size() && writer.add(states[at])) ++at;
    const auto written = writer.statements();
    chunks.emplace_back(written.begin(), written.end());
  }
  return chunks;
}

bool Connection::quiet() const {
  const Parts& p = *parts_;
  return p.failed || (p.sender.idle() && !p.receiver.expects() && p.receiver.quiet() &&
                      !p.unconfirmed() && !p.control_due(Time{INT64_MIN}));
}

bool Connection::ends_unconfirmed() const {
  const Parts& p = *parts_;
  return !p.failed && (p.sender.ends_unconfirmed() || p.receiver.ends_unconfirmed());
}

std::span<const Path> Connection::paths() const { return parts_->sender.ledger().paths(); }
uint64_t Connection::segments_lost() const { return parts_->sender.ledger().lost(); }
uint64_t Connection::segments_retransmitted() const {
  return parts_->sender.ledger().retransmitted();
}
Time Connection::last_heard() const { return parts_->liveness.last_heard(); }

std::string Connection::describe(Time now) const {
  const Parts& p = *parts_;
  const auto in_us = [now](Time at) {
    if (at == Time::never()) return std::string("never");
    return at.ns == INT64_MIN ? std::string("now") : std::to_string((at - now).ns / 1000) + " us";
  };
  int dead = 0, killing = 0;
  for (const Path& path : paths()) dead += path.dead, killing += path.killing;
  return std::to_string(p.sender.open_messages()) + " sends and " +
         std::to_string(p.receiver.open_receives()) + " receives open, " +
         std::to_string(p.sender.ledger().in_flight()) + " bytes in flight, " +
         std::to_string(paths().size()) + " paths (" + std::to_string(dead) + " dead, " +
         std::to_string(killing) + " ending), heard " + in_us(p.liveness.last_heard()) +
         ", loss timer " + in_us(p.sender.ledger().deadline()) + ", repeat " + in_us(p.repeat_at) +
         ", ack " + in_us(p.receiver.deadline()) + ", liveness " + in_us(p.liveness.deadline()) +
         (p.control_due(now) ? ", control due" : "") + (p.failed ? ", failed" : "") +
         in_words(p.sender.hints());
}

}  // namespace weft
