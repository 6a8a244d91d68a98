// SPDX-License-Identifier: Apache-2.0
//
// A connection whose peer says whatever the input says: headers that decode, statements, writes
// that land, in any order, while the application sends and receives. The first byte chooses the
// fabric's offloads and how paths are chosen; then come steps, one byte for what and its arguments.
//
// Whatever is said: payload goes inside a buffer that was posted and is open, what is transmitted
// comes from a buffer that was given, sizes reported fit, nothing goes on for ever while time
// stands still. A peer that lies may break its flows, and does no other harm.
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "multipath/connection/connection.h"
#include "multipath/connection/matcher.h"
#include "tests/fuzz/fuzz.h"

namespace weft::fuzz {
namespace {

constexpr FlowId kSendFlow = 5;  // as the peer is supposed to have named it
constexpr size_t kBuffer = 4096;
constexpr size_t kMostSteps = 400;
constexpr int kMostRounds = 2000;
constexpr std::array kLaws = {"nscc", "fixed", "mnscc", "swift", "timely", "dctcp", "cubic"};
constexpr std::array kSelectors = {"reps", "oblivious", "mixed",   "bitmap",
                                   "p2c",  "single",    "flowlet", "plb"};

class Victim {
 public:
  explicit Victim(uint8_t kind) : connection_(configure(kind)), outbox_(new Outbox) {
    const uint64_t key = 7;
    promise(connection_.add_region(buffer_.data(), kBuffer, {&key, 1}, &region_), "room for one");
    promise(connection_.open_receive_flow(&receive_flow_), "room for a flow");
    promise(connection_.open_send_flow(kSendFlow), "room for another");
  }

  void step(uint8_t what, wire::Reader& r);
  void turn();
  bool completed() const { return completed_; }

 private:
  ConnectionConfig configure(uint8_t kind) {
    ConnectionConfig c;
    places_ = kind & 1;
    c.offloads = {.places = places_,
                  .reliable = places_ && (kind & 2) != 0,
                  .ordered_path = places_ && (kind & 6) != 0};
    c.law = kLaws[kind / 8 % kLaws.size()];
    c.selector = kSelectors[kind / 8 % kSelectors.size()];
    c.paths = 4;
    c.peer = {2, 99};
    c.segment_bytes = c.peer_segment_bytes = 256;
    c.burst_bytes = 1024;
    c.seed = kind;
    return c;
  }

  void control(wire::Reader& r, bool out_of_band);
  void data(wire::Reader& r);
  void probe(wire::Reader& r);
  void post_receive(wire::Reader& r);
  void post_send(wire::Reader& r);
  void rare(wire::Reader& r);
  void hear(const Event& event);
  void transmit();

  bool inside(const std::byte* at, uint64_t bytes) const {
    const std::byte* first = buffer_.data();
    return at >= first && at <= first + kBuffer &&
           bytes <= static_cast<uint64_t>(first + kBuffer - at);
  }

  bool places_ = false;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kBuffer);
  Connection connection_;
  std::unique_ptr<Outbox> outbox_;
  Matcher matcher_;
  RegionId region_ = 0;
  FlowId receive_flow_ = 0;
  Time now_{1000000};
  Token last_token_ = 0;
  std::vector<uint64_t> receive_room_ = {0};  // by token
  std::vector<bool> over_ = {false};          // by token
  bool completed_ = false;
};

void Victim::control(wire::Reader& r, bool out_of_band) {
  const auto stamp = r.get<uint16_t>();
  const auto length = r.get<uint16_t>();
  const auto statements = r.get_bytes(std::min<size_t>(length, r.left()));
  if (out_of_band) return connection_.handle_statements(now_, statements);
  std::vector<std::byte> packet(wire::kControlHeaderBytes + statements.size());
  wire::encode_control(packet, {1, 1},
                       {stamp, uint32_t{stamp}, 0, static_cast<uint16_t>(statements.size())});
  if (!statements.empty()) {
    std::memcpy(packet.data() + wire::kControlHeaderBytes, statements.data(), statements.size());
  }
  connection_.handle_control(now_, packet);
}

void Victim::data(wire::Reader& r) {
  wire::DataHeader h;
  h.packet = wire::kFirstPacket + r.get<uint16_t>();
  h.path = r.get<uint8_t>();
  h.part = r.get<uint8_t>();
  h.flow = receive_flow_ ^ r.get<uint8_t>();
  h.number = r.get<uint8_t>();
  h.segment = r.get<uint8_t>();
  h.message_bytes = r.get<uint16_t>();
  h.segment_bytes = 128u * r.get<uint8_t>();
  const uint64_t offset = uint64_t{h.segment} * h.segment_bytes;
  if (offset > h.message_bytes) return;
  h.payload_bytes =
      static_cast<uint32_t>(std::min<uint64_t>(h.segment_bytes, h.message_bytes - offset));
  std::vector<std::byte> datagram(wire::kDataHeaderBytes + h.payload_bytes);
  wire::encode_data(datagram, {1, 1}, h);
  if (!wire::decode_data(datagram, &h)) return;  // as the engine does
  std::byte* to = connection_.claim(now_, h);
  if (to == nullptr) return;
  if (h.payload_bytes > 0) {
    promise(inside(to, h.payload_bytes), "payload goes inside a posted buffer");
    std::memset(to, 1, h.payload_bytes);
  }
  connection_.handle_arrival(now_, h, (h.packet & 1) != 0);
}

void Victim::probe(wire::Reader& r) {
  wire::ProbeHeader probe;
  probe.packet = r.get<uint32_t>();
  probe.path = r.get<uint16_t>();
  connection_.handle_probe(now_, probe, false);
}

void Victim::post_receive(wire::Reader& r) {
  const size_t parts = 1 + (r.get<uint8_t>() & 7);
  const auto offset = r.get<uint16_t>();
  const auto size = r.get<uint16_t>();
  std::array<ReceivePart, wire::kMaxParts> part;
  for (size_t i = 0; i < parts; ++i) {
    part[i] = {buffer_.data() + offset % kBuffer, size, region_, static_cast<int32_t>(i)};
  }
  const bool fits = inside(part[0].base, size);
  const bool taken =
      connection_.post_receive(receive_flow_, std::span(part).first(parts), last_token_ + 1);
  promise(!taken || fits, "a receive outside its region is refused");
  if (!taken) return;
  ++last_token_;
  receive_room_.push_back(size);
  over_.push_back(false);
}

void Victim::post_send(wire::Reader& r) {
  const auto tag = r.get<uint8_t>();
  const uint64_t bytes = r.get<uint16_t>() % (kBuffer + 1);
  Matcher::Match match;
  if (matcher_.match(tag, bytes, &match) != Matcher::Answer::kMatched) return;
  if (!connection_.post_send({kSendFlow,
                              match.number,
                              match.part,
                              buffer_.data(),
                              bytes,
                              0,
                              region_,
                              last_token_ + 1,
                              {}})) {
    return;
  }
  ++last_token_;
  receive_room_.push_back(0);
  over_.push_back(false);
}

void Victim::rare(wire::Reader& r) {
  switch (r.get<uint8_t>() & 7) {
    case 0: connection_.handle_peer_hint(now_); break;
    case 1: connection_.handle_wanted(now_); break;
    case 2: connection_.close_send_flow(kSendFlow); break;
    case 3: connection_.close_receive_flow(receive_flow_); break;
    case 4: connection_.handle_peer_gone(now_); break;
    case 5: connection_.handle_poll_gap(microseconds(r.get<uint16_t>())); break;
    case 6: promise(!connection_.describe(now_).empty(), "it can say what it waits for"); break;
    case 7: (void)connection_.last_word(); break;
  }
}

void Victim::step(uint8_t what, wire::Reader& r) {
  switch (what & 7) {
    case 0: control(r, false); break;
    case 1: control(r, true); break;
    case 2:
      if (places_) {
        const auto path = r.get<uint8_t>();
        const auto epoch = r.get<uint8_t>();
        const auto immediate = r.get<uint32_t>();
        connection_.handle_landing(now_, path & 3, epoch, immediate, r.get<uint16_t>());
      } else {
        data(r);
      }
      break;
    case 3:
      if (!places_) probe(r);
      break;
    case 4: now_ = now_ + microseconds(1 + r.get<uint16_t>()); break;
    case 5: post_receive(r); break;
    case 6: post_send(r); break;
    case 7: rare(r); break;
  }
}

void Victim::hear(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kGranted:
      promise(!matcher_.full(), "grants are bounded");
      matcher_.add(event.grant);
      return;
    case Event::Kind::kFlowFailed:
      promise(event.failure != Failure::kNone, "a failure has a reason");
      return;
    case Event::Kind::kReceived:
    case Event::Kind::kSent: break;
  }
  promise(event.token >= 1 && event.token <= last_token_, "a token is one that was given");
  promise(!over_[event.token], "a request completes once");
  over_[event.token] = true;
  completed_ = true;
  for (size_t i = 0; event.kind == Event::Kind::kReceived && i < event.parts; ++i) {
    promise(event.sizes[i] <= receive_room_[event.token], "no more arrives than there is room for");
  }
}

void Victim::transmit() {
  std::vector<uint64_t> read;
  std::vector<PathCommand> killed;
  Outbox& out = *outbox_;
  for (int round = 0;; ++round) {
    promise(round < kMostRounds, "it stops sending when time stands still");
    connection_.poll_transmit(now_, out);
    if (out.empty()) break;
    for (size_t i = 0; i < out.segments; ++i) {
      const SegmentPost& post = out.segment[i];
      promise(post.bytes == 0 || inside(post.source, post.bytes), "what is sent was given to send");
      promise(post.path < 4 && post.header_bytes <= kMaxSegmentHeader, "on a path that there is");
      if (places_) read.push_back(post.cookie);
    }
    for (size_t i = 0; i < out.controls; ++i) {
      promise(out.control[i].bytes <= kMaxControlBytes && out.control[i].path < 4,
              "control fits its packet");
    }
    for (size_t i = 0; i < out.commands; ++i) killed.push_back(out.command[i]);
  }
  for (const uint64_t cookie : read) connection_.handle_completion(cookie);
  for (const PathCommand& each : killed) {
    if (each.what == PathCommand::What::kKill) {
      connection_.handle_path_killed(now_, each.path, each.epoch);
    }
  }
}

void Victim::turn() {
  if (connection_.poll_timeout() <= now_) connection_.handle_timeout(now_);
  transmit();
  Event event;
  for (int n = 0; connection_.poll_event(&event); ++n) {
    promise(n < kMostRounds, "events end");
    hear(event);
  }
  (void)connection_.quiet();
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  wire::Reader r(input);
  Victim victim(r.get<uint8_t>());
  for (size_t steps = 0; steps < kMostSteps && r.left() > 0; ++steps) {
    victim.step(r.get<uint8_t>(), r);
    victim.turn();
  }
  return victim.completed();
}

}  // namespace weft::fuzz
