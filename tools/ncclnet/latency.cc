// SPDX-License-Identifier: Apache-2.0
// The two ends of a ping-pong; see latency.h.
#include "tools/ncclnet/latency.h"

#include <array>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "tools/common/clock.h"
#include "tools/common/pattern.h"
#include "tools/ncclnet/links.h"
#include "tools/ncclnet/time_histogram.h"

namespace weft::ncclnet {
namespace {

constexpr uint64_t kSlots = 4;     // receives posted ahead, and messages written ahead
constexpr uint64_t kWarmUp = 100;  // rounds that are not counted
constexpr size_t kGuardBytes = 64;
constexpr size_t kLine = 128;
constexpr int kTag = 100;

// What rank 0 tells the parent, each as the value of a barrier; see run_latency.
enum Figure : uint32_t { kCount, kHalf, kNinety, kNinetyNine, kMax, kFigures };
constexpr uint32_t kFirstFigure = 1;  // barrier 0 is the start

class Player {
 public:
  Player(Rank& rank, Links& links, size_t out, size_t in)
      : rank_(rank),
        links_(links),
        out_(links.comm_out(out)),
        in_(links.comm_in(in)),
        bytes_(rank.options().bytes[0]),
        stride_((bytes_ + kGuardBytes + kLine - 1) / kLine * kLine),
        sources_(kSlots * stride_),
        arrivals_(kSlots * stride_) {
    out_memory_ = links.register_memory(out_, sources_.data(), sources_.size());
    in_memory_ = links.register_memory(in_, arrivals_.data(), arrivals_.size());
    for (uint64_t number = 0; number < kSlots; ++number) write(number);
    until([this] { return posted_ == kSlots; });
  }

  // Rank 0.
  void ask(TimeHistogram& times) {
    const Options& options = rank_.options();
    const int64_t end = tools::now_ns() + static_cast<int64_t>(options.seconds * 1e9);
    bool over = false;
    for (uint64_t round = 0; !over; ++round) {
      until([this] { return ready(); });
      const int64_t start = tools::now_ns();
      until([this] { return send(bytes_); });
      until([this] { return arrived(); });
      const int64_t stop = tools::now_ns();
      check();
      if (round < kWarmUp) continue;
      times.add(stop - start);
      over = (options.iterations != 0 && times.count() == options.iterations) ||
             (options.seconds > 0 && stop >= end);
    }
    end_game();
  }

  // Rank 1.
  void answer() {
    for (;;) {
      until([this] { return arrived(); });
      if (received_bytes_ == 0) break;
      until([this] { return send(bytes_); });
      check();
      until([this] { return ready(); });
    }
    ++taken_;
    end_game();
  }

 private:
  // Waits for `done`, and does meanwhile what is due: the hot path is what `done` itself calls.
  template <class Done>
  void until(Done done) {
    Backoff backoff;
    while (!done()) {
      if (tend()) backoff.progressed();
      backoff.pause(false);
    }
  }

  // Everything for the next round is there: a written message, and an answer's receive.
  bool ready() const { return sent_ - sent_done_ < kSlots && (ending_ || posted_ > taken_); }

  bool tend() {
    bool any = false;
    if (!ending_ && posted_ - taken_ < kSlots) any = post();
    Links::Sizes sizes;
    if (sent_done_ < sent_ && links_.test_send(sends_[sent_done_ % kSlots], sizes)) {
      tools::fill_guard(source(sent_done_), bytes_);  // nobody may read it any more
      write(sent_done_ + kSlots);
      ++sent_done_;
      any = true;
    }
    return any;
  }

  bool send(size_t bytes) {
    if (sent_ - sent_done_ == kSlots) return false;
    void* request = links_.send(out_, source(sent_), bytes, kTag, out_memory_);
    if (request == nullptr) return false;
    sends_[sent_++ % kSlots] = request;
    return true;
  }

  bool post() {
    unsigned char* to = arrival(posted_);
    tools::fill_guard(to, bytes_);
    tools::fill_guard(to + bytes_, kGuardBytes);
    void* data = to;
    size_t size = bytes_ + kGuardBytes;  // larger than what comes, as NCCL's are
    int tag = kTag;
    void* memory = in_memory_;
    void* request = links_.receive(in_, 1, &data, &size, &tag, &memory);
    if (request == nullptr) return false;
    receives_[posted_++ % kSlots] = request;
    return true;
  }

  // The receive of the oldest message not taken yet is done: its size is in received_bytes_.
  bool arrived() {
    if (taken_ == posted_) return false;
    Links::Sizes sizes;
    if (!links_.test_receive(receives_[taken_ % kSlots], 1, sizes)) return false;
    received_bytes_ = sizes[0];
    return true;
  }

  void check() {
    if (received_bytes_ != static_cast<int64_t>(bytes_)) wrong_size(bytes_);
    const unsigned char* data = arrival(taken_);
    const uint64_t seed = tools::pattern_seed(1 - rank_.index(), taken_);
    if (tools::check_pattern(data, bytes_, seed)) {
      std::vector<tools::KnownMessage> known;
      for (uint64_t n = taken_ < kSlots ? 0 : taken_ - kSlots; n < taken_ + kSlots; ++n) {
        known.push_back({tools::pattern_seed(1 - rank_.index(), n), bytes_,
                         fmt::format("message {} of rank {}", n, 1 - rank_.index())});
      }
      wrong(tools::describe_wrong_bytes(data, bytes_, seed, "its bytes", known));
    }
    if (const auto beyond = tools::check_guard(data + bytes_, kGuardBytes)) {
      wrong(fmt::format("bytes past the received {} were overwritten: the first is {}", bytes_,
                        bytes_ + *beyond));
    }
    rank_.data_arrived(bytes_, 1);
    ++taken_;
  }

  // Both sides leave no receive and no send open. Messages from here on have no bytes.
  void end_game() {
    const uint64_t first = taken_ - rank_.index();  // rank 1 has already taken the first of the end
    until([this, first] { return posted_ == first + kSlots; });
    ending_ = true;
    for (uint64_t i = 0; i < kSlots; ++i) until([this] { return send(0); });
    while (taken_ < posted_) {
      until([this] { return arrived(); });
      if (received_bytes_ != 0) wrong_size(0);
      ++taken_;
    }
    until([this] { return sent_done_ == sent_; });
  }

  [[noreturn]] void wrong_size(size_t expected) {
    wrong(fmt::format(
        "wrong size: expected {}, test reported {}", expected,
        received_bytes_ == Links::kUnwritten ? "none" : fmt::format("{}", received_bytes_)));
  }

  [[noreturn]] void wrong(const std::string& what) {
    rank_.fail(tools::kDataWrong, fmt::format("message {}: {}", taken_, what));
  }

  unsigned char* source(uint64_t n) { return sources_.data() + n % kSlots * stride_; }
  unsigned char* arrival(uint64_t n) { return arrivals_.data() + n % kSlots * stride_; }
  void write(uint64_t number) {
    tools::fill_pattern(source(number), bytes_, tools::pattern_seed(rank_.index(), number));
  }

  Rank& rank_;
  Links& links_;
  void* out_;
  void* in_;
  size_t bytes_, stride_;
  std::vector<unsigned char> sources_, arrivals_;
  void* out_memory_ = nullptr;
  void* in_memory_ = nullptr;
  std::array<void*, kSlots> sends_{}, receives_{};
  uint64_t sent_ = 0, sent_done_ = 0;  // messages out
  uint64_t posted_ = 0, taken_ = 0;    // messages in
  int received_bytes_ = 0;
  bool ending_ = false;
};

std::string microseconds_one_way(uint64_t round_trip_ns) {
  return fmt::format("{:.2f}", static_cast<double>(round_trip_ns) / 2000);
}

}  // namespace

void plan_latency(const Options& options, Plan& plan) {
  plan.ranks = 2;
  if (options.iterations != 0 && options.seconds <= 0) {
    plan.total_bytes = 2 * options.bytes[0] * (options.iterations + kWarmUp);
  }
  auto figures = std::make_shared<std::array<uint64_t, kFigures>>();
  plan.at_barrier = [figures](uint32_t barrier, uint64_t value) {
    if (barrier >= kFirstFigure && barrier < kFirstFigure + kFigures) {
      (*figures)[barrier - kFirstFigure] = value;
    }
  };
  plan.finish = [figures](tools::Report& report) {
    report.extra.emplace_back("round_trips", fmt::format("{}", (*figures)[kCount]));
    report.extra.emplace_back("p50_us", microseconds_one_way((*figures)[kHalf]));
    report.extra.emplace_back("p90_us", microseconds_one_way((*figures)[kNinety]));
    report.extra.emplace_back("p99_us", microseconds_one_way((*figures)[kNinetyNine]));
    report.extra.emplace_back("max_us", microseconds_one_way((*figures)[kMax]));
  };
}

void run_latency(Rank& rank) {
  Links links(rank);
  const size_t in = links.add_in(fmt::format("to{}", rank.index()));
  const size_t out = links.add_out(fmt::format("to{}", 1 - rank.index()));
  links.establish();
  TimeHistogram times;
  Player player(rank, links, out, in);
  rank.barrier(0, 0, [] {});
  if (rank.index() == 0)
    player.ask(times);
  else
    player.answer();
  links.close();
  const std::array<uint64_t, kFigures> figures = {times.count(), times.percentile_ns(0.5),
                                                  times.percentile_ns(0.9),
                                                  times.percentile_ns(0.99), times.max_ns()};
  for (uint32_t i = 0; i < kFigures; ++i) rank.barrier(kFirstFigure + i, figures[i], [] {});
}

}  // namespace weft::ncclnet
