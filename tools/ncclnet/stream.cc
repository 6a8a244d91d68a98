// SPDX-License-Identifier: Apache-2.0
// The two ends of a stream; see stream.h.
#include "tools/ncclnet/stream.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "tools/common/clock.h"
#include "tools/common/pattern.h"
#include "tools/ncclnet/links.h"
#include "tools/ncclnet/stream_layout.h"

namespace weft::ncclnet {
namespace {

using Layout = StreamLayout;
constexpr const char* kName = "stream";
constexpr int kFirstTag = 100;

class Sender {
 public:
  Sender(Rank& rank, Links& links, size_t out)
      : rank_(rank),
        links_(links),
        comm_(links.comm_out(out)),
        layout_(rank.options()),
        memory_(layout_.buffers() * layout_.buffer_bytes()),
        requests_(layout_.buffers() * layout_.parts) {
    mhandle_ = links.register_memory(comm_, memory_.data(), memory_.size());
    for (uint64_t buffer = 0; layout_.stamped() && buffer < layout_.buffers(); ++buffer) {
      for (uint32_t part = 0; part < layout_.parts; ++part) {
        tools::fill_pattern(at(buffer, part) + Layout::kStampBytes,
                            layout_.bytes - Layout::kStampBytes, layout_.seed(buffer, part));
      }
    }
  }

  void run() {
    const int64_t end = tools::now_ns() + static_cast<int64_t>(rank_.options().seconds * 1e9);
    uint64_t stop = UINT64_MAX;  // groups in all, once known
    Backoff backoff;
    while (completed_ < stop) {
      if (stop == UINT64_MAX && part_ == 0 && tools::now_ns() >= end) {
        last_ = sent_;
        stop = sent_ + layout_.window;
      }
      if (sent_ < stop && send_part()) backoff.progressed();
      if (test_oldest()) backoff.progressed();
      backoff.pause(false);
    }
  }

 private:
  unsigned char* at(uint64_t group, uint32_t part) {
    return memory_.data() + (group % layout_.buffers()) * layout_.buffer_bytes() +
           part * layout_.stride;
  }
  bool ends(uint64_t group) const { return group >= last_; }

  // Writes what changes: the stamp, and the ends, which were spoiled after the last use.
  void write_message(uint64_t group, uint32_t part) {
    unsigned char* to = at(group, part);
    const uint64_t seed = layout_.seed(group, part);
    if (!layout_.stamped()) {
      tools::fill_pattern(to, layout_.bytes, seed);
      return;
    }
    const uint64_t stamp = Layout::stamp(group, part);
    std::memcpy(to, &stamp, sizeof stamp);
    const size_t body = layout_.bytes - Layout::kStampBytes;
    const size_t piece = std::min(body, Layout::kGuardBytes);
    const size_t tail = (body - piece) / 8 * 8;
    tools::fill_pattern(to + Layout::kStampBytes, piece, seed);
    tools::fill_pattern(to + Layout::kStampBytes + tail, body - tail,
                        tools::pattern_from(seed, tail));
  }

  bool send_part() {
    if (part_ == 0 && sent_ - completed_ >= layout_.buffers()) return false;
    const auto part = static_cast<uint32_t>((part_ + sent_) % layout_.parts);
    const size_t bytes = ends(sent_) ? 0 : layout_.bytes;
    if (bytes > 0 && !written_) write_message(sent_, part);
    written_ = true;  // until the plugin takes it
    void* request =
        links_.send(comm_, at(sent_, part), bytes, kFirstTag + static_cast<int>(part), mhandle_);
    if (request == nullptr) return false;
    written_ = false;
    requests_[(sent_ % layout_.buffers()) * layout_.parts + part_] = {request, part};
    if (++part_ == layout_.parts) {
      part_ = 0;
      ++sent_;
    }
    return true;
  }

  bool test_oldest() {
    if (completed_ == sent_ && done_parts_ == part_) return false;
    const auto [request, part] =
        requests_[(completed_ % layout_.buffers()) * layout_.parts + done_parts_];
    Links::Sizes sizes;
    if (!links_.test_send(request, sizes)) return false;
    const size_t piece = std::min(layout_.bytes, Layout::kGuardBytes);
    tools::fill_guard(at(completed_, part), piece);
    tools::fill_guard(at(completed_, part) + layout_.bytes - piece, piece);
    if (++done_parts_ == layout_.parts) {
      done_parts_ = 0;
      ++completed_;
    }
    return true;
  }

  struct Sent {
    void* request = nullptr;
    uint32_t part = 0;
  };
  Rank& rank_;
  Links& links_;
  void* comm_;
  Layout layout_;
  std::vector<unsigned char> memory_;
  std::vector<Sent> requests_;  // by buffer, in the order of sending
  void* mhandle_ = nullptr;
  uint64_t sent_ = 0, completed_ = 0;   // groups
  uint32_t part_ = 0, done_parts_ = 0;  // within the group being sent, being completed
  bool written_ = false;
  uint64_t last_ = UINT64_MAX;  // groups from here on are the end
};

class Receiver {
 public:
  Receiver(Rank& rank, Links& links, size_t in)
      : rank_(rank),
        links_(links),
        comm_(links.comm_in(in)),
        layout_(rank.options()),
        memory_(layout_.window * layout_.buffer_bytes()),
        requests_(layout_.window) {
    mhandle_ = links.register_memory(comm_, memory_.data(), memory_.size());
  }

  void run() {
    Backoff backoff;
    bool ending = false;
    while (!ending || arrived_ < posted_) {
      if (!ending && posted_ - arrived_ < layout_.window && post()) backoff.progressed();
      Links::Sizes sizes;
      if (arrived_ < posted_ &&
          links_.test_receive(requests_[arrived_ % layout_.window], layout_.parts, sizes)) {
        backoff.progressed();
        ending = received(sizes, ending);
        ++arrived_;
      }
      backoff.pause(false);
    }
  }

 private:
  unsigned char* at(uint64_t group, uint32_t part) {
    return memory_.data() + (group % layout_.window) * layout_.buffer_bytes() +
           part * layout_.stride;
  }

  bool post() {
    void* data[nccl::kMaxReceives];
    size_t sizes[nccl::kMaxReceives];
    int tags[nccl::kMaxReceives];
    void* mhandles[nccl::kMaxReceives];
    for (uint32_t part = 0; part < layout_.parts; ++part) {
      data[part] = at(posted_, part);
      sizes[part] = layout_.bytes + Layout::kGuardBytes;  // larger than what comes, as NCCL's are
      tags[part] = kFirstTag + static_cast<int>(part);
      mhandles[part] = mhandle_;
      tools::fill_guard(at(posted_, part) + layout_.bytes, Layout::kGuardBytes);
    }
    void* request =
        links_.receive(comm_, static_cast<int>(layout_.parts), data, sizes, tags, mhandles);
    if (request == nullptr) return false;
    requests_[posted_++ % layout_.window] = request;
    return true;
  }

  static std::string shown(int size) {
    return size == Links::kUnwritten ? "none" : fmt::format("{}", size);
  }

  [[noreturn]] void wrong(uint32_t part, const std::string& what) {
    rank_.fail(tools::kDataWrong, fmt::format("message {} part {}: {}", arrived_, part, what));
  }

  // True from the first group of the end on.
  bool received(const Links::Sizes& sizes, bool ending) {
    const bool end = ending || sizes[0] == 0;
    const size_t expected = end ? 0 : layout_.bytes;
    for (uint32_t part = 0; part < layout_.parts; ++part) {
      if (static_cast<int64_t>(sizes[part]) != static_cast<int64_t>(expected)) {
        wrong(part, fmt::format("wrong size: expected {}, test reported {}", expected,
                                shown(sizes[part])));
      }
      if (!end) check(part);
    }
    if (!end) rank_.data_arrived(layout_.bytes * layout_.parts, layout_.parts);
    return end;
  }

  void check(uint32_t part) {
    const unsigned char* data = at(arrived_, part);
    const uint64_t seed = layout_.seed(arrived_, part);
    size_t skip = 0;
    if (layout_.stamped()) {
      skip = Layout::kStampBytes;
      uint64_t seen = 0;
      std::memcpy(&seen, data, sizeof seen);
      if (seen != Layout::stamp(arrived_, part)) wrong_stamp(part, seen ^ Layout::kStampKey);
    }
    if (!right(data + skip, layout_.bytes - skip, seed)) {
      std::vector<tools::KnownMessage> known;
      for (uint64_t group = arrived_ - std::min(arrived_, 4 * layout_.window);
           group < arrived_ + layout_.window; ++group) {
        for (uint32_t p = 0; p < layout_.parts; ++p) {
          known.push_back({layout_.seed(group, p), layout_.bytes - skip,
                           fmt::format("message {} part {}", group, p)});
        }
      }
      wrong(part, tools::describe_wrong_bytes(data + skip, layout_.bytes - skip, seed,
                                              fmt::format("its bytes from {} on", skip), known));
    }
    if (const auto beyond = tools::check_guard(data + layout_.bytes, Layout::kGuardBytes)) {
      wrong(part, fmt::format("bytes past the received {} were overwritten: the first is {}",
                              layout_.bytes, layout_.bytes + *beyond));
    }
  }

  // Reading every byte costs a benchmark as much as the transport's own copy does.
  bool right(const unsigned char* data, size_t bytes, uint64_t seed) const {
    if (rank_.options().check_all) return !tools::check_pattern(data, bytes, seed);
    constexpr size_t kBlock = 8192, kLine = 128;
    size_t at = arrived_ * kLine % kBlock;  // another line from message to message
    bool all = true;
    for (; at + kLine <= bytes; at += kBlock)
      all &= !tools::check_pattern(data + at, kLine, tools::pattern_from(seed, at));
    return all;
  }

  [[noreturn]] void wrong_stamp(uint32_t part, uint64_t seen) {
    const uint64_t group = seen >> 8;
    const uint64_t its_part = seen & 0xff;
    if (its_part < layout_.parts && group < arrived_ + 2 * layout_.window) {
      wrong(part, fmt::format("wrong bytes: here is message {} part {}", group, its_part));
    }
    wrong(part, fmt::format("wrong bytes: its first 8 (the stamp) are {:016x}, expected {:016x}",
                            seen ^ Layout::kStampKey, Layout::stamp(arrived_, part)));
  }

  Rank& rank_;
  Links& links_;
  void* comm_;
  Layout layout_;
  std::vector<unsigned char> memory_;
  std::vector<void*> requests_;
  void* mhandle_ = nullptr;
  uint64_t posted_ = 0, arrived_ = 0;  // groups
};

}  // namespace

void plan_stream(const Options&, Plan& plan) { plan.ranks = 2; }

void run_stream(Rank& rank) {
  Links links(rank);
  if (static_cast<int>(rank.options().parts) > links.properties().max_recvs) {
    rank.fail(tools::kUsage, fmt::format("--parts {}: the plugin takes at most {} in one receive",
                                         rank.options().parts, links.properties().max_recvs));
  }
  const bool sends = rank.index() == 0;
  const size_t flow = sends ? links.add_out(kName) : links.add_in(kName);
  links.establish();
  // The buffers live until they are deregistered.
  auto run = [&](auto&& end) {
    rank.barrier(0, 0, [] {});
    end.run();
    links.close();
  };
  if (sends)
    run(Sender(rank, links, flow));
  else
    run(Receiver(rank, links, flow));
}

}  // namespace weft::ncclnet
