// SPDX-License-Identifier: Apache-2.0
// What the state machine itself costs: two connections whose fabric costs nothing.
//
// One end sends 1 MiB messages in 16 KB segments to the other; posts are handed over as landings
// (placing) or claimed and called arrived without a copy (datagram); control goes both ways.
// Reported: nanoseconds a segment and side, control included (budget: 150).
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <vector>

#include "multipath/connection/connection.h"
#include "multipath/connection/matcher.h"

namespace weft {
namespace {

constexpr uint32_t kSegment = 16 << 10;
constexpr uint64_t kMessage = 1 << 20;
constexpr int kDepth = 8;  // messages in flight

class Bench {
 public:
  explicit Bench(bool places, int paths) : places_(places), memory_(kMessage * 2) {
    for (int h = 0; h < 2; ++h) {
      ConnectionConfig c;
      c.offloads = {.places = places, .reliable = places, .ordered_path = places};
      c.paths = paths;
      c.segment_bytes = c.peer_segment_bytes = kSegment;
      c.window_bytes = 2 << 20;
      c.seed = static_cast<uint64_t>(h + 1);
      end_[h] = std::make_unique<Connection>(c);
      const uint64_t key = 1;
      end_[h]->add_region(memory_.data(), memory_.size(), {&key, 1}, &region_[h]);
    }
    end_[1]->open_receive_flow(&flow_);
    end_[0]->open_send_flow(flow_);
    for (int i = 0; i < kDepth; ++i) receive();
  }

  // Until `messages` more have been sent; returns the segments posted.
  uint64_t run(uint64_t messages) {
    const uint64_t goal = sent_ + messages;
    const uint64_t before = segments_;
    while (sent_ < goal) {
      now_ = now_ + microseconds(5);
      turn(0);
      turn(1);
    }
    return segments_ - before;
  }

 private:
  void receive() {
    const ReceivePart part{memory_.data(), kMessage, region_[1], 0};
    end_[1]->post_receive(flow_, {&part, 1}, 0);
  }

  void turn(int h) {
    Connection& c = *end_[h];
    if (c.poll_timeout() <= now_) c.handle_timeout(now_);
    do {
      c.poll_transmit(now_, *out_);
      hand_over(h);
    } while (out_->segments == Outbox::kSegments);
    Event event;
    while (c.poll_event(&event)) on_event(event);
  }

  void hand_over(int h) {
    Connection& to = *end_[1 - h];
    for (size_t i = 0; i < out_->controls; ++i) {
      to.handle_control(now_, std::span(out_->control[i].data).first(out_->control[i].bytes));
    }
    for (size_t i = 0; i < out_->segments; ++i) {
      const SegmentPost& post = out_->segment[i];
      if (places_) {
        end_[h]->handle_completion(post.cookie);
        to.handle_landing(now_, post.path, post.epoch, post.immediate, post.bytes);
      } else {
        // The header as a datagram of that length would have it; no payload is touched.
        wire::DataHeader header;
        wire::decode_data(std::span(post.header.data(), wire::kDataHeaderBytes + post.bytes),
                          &header);
        if (to.claim(now_, header)) to.handle_arrival(now_, header, false);
      }
    }
    segments_ += out_->segments;
  }

  void on_event(const Event& e) {
    if (e.kind == Event::Kind::kGranted) {
      matcher_.add(e.grant);
    } else if (e.kind == Event::Kind::kSent) {
      ++sent_;
    } else if (e.kind == Event::Kind::kReceived) {
      receive();
    }
    Matcher::Match match;
    while (matcher_.match(0, kMessage, &match) == Matcher::Answer::kMatched) {
      end_[0]->post_send(
          {flow_, match.number, match.part, memory_.data(), kMessage, 0, region_[0], 0});
    }
  }

  const bool places_;
  std::vector<std::byte> memory_;
  std::array<std::unique_ptr<Connection>, 2> end_;
  std::array<RegionId, 2> region_{};
  FlowId flow_ = 0;
  Matcher matcher_;
  std::unique_ptr<Outbox> out_ = std::make_unique<Outbox>();
  Time now_{1};
  uint64_t sent_ = 0, segments_ = 0;
};

void connection(benchmark::State& state, bool places) {
  Bench bench(places, static_cast<int>(state.range(0)));
  bench.run(64);
  uint64_t segments = 0;
  for (auto _ : state) segments += bench.run(16);
  state.counters["segment_and_side"] = benchmark::Counter(
      static_cast<double>(segments) * 2, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void ConnectionPlacing(benchmark::State& state) { connection(state, true); }
void ConnectionDatagram(benchmark::State& state) { connection(state, false); }
BENCHMARK(ConnectionPlacing)->Arg(8)->Arg(32)->Arg(128);
BENCHMARK(ConnectionDatagram)->Arg(8)->Arg(32)->Arg(128);

}  // namespace
}  // namespace weft
