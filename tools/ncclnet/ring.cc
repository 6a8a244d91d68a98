// SPDX-License-Identifier: Apache-2.0
// The pipeline of one ring; see ring.h.
#include "tools/ncclnet/ring.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "tools/common/pattern.h"

namespace weft::ncclnet {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr size_t kChunkAlign = 4;  // floats: chunks begin on 16 bytes, as NCCL's do
constexpr int kTag = 0;

// What no sum looks like (not a number), laid at some places of a receive slot: if one is left
// when the receive is done, the data was not there yet.
constexpr uint32_t kCanary = 0xFFFFFFFFu;
constexpr size_t kCanaryStride = 2048;

template <class Visit>
void for_each_canary(size_t bytes, Visit visit) {
  for (size_t at = 0; at < bytes; at += kCanaryStride) visit(at);
  if (bytes > 0) visit(bytes - sizeof kCanary);
}

void lay_canaries(unsigned char* slot, size_t bytes) {
  for_each_canary(bytes, [&](size_t at) { std::memcpy(slot + at, &kCanary, sizeof kCanary); });
}

std::optional<size_t> find_canary(const unsigned char* slot, size_t bytes) {
  std::optional<size_t> left;
  for_each_canary(bytes, [&](size_t at) {
    if (!left && std::memcmp(slot + at, &kCanary, sizeof kCanary) == 0) left = at;
  });
  return left;
}

}  // namespace

RingChannel::RingChannel(Rank& rank, Links& links, size_t in, size_t out)
    : rank_(rank),
      links_(links),
      in_(in),
      out_(out),
      slots_(rank.options().inflight),
      slot_bytes_(rank.options().slot_bytes),
      receive_memory_(slots_ * slot_bytes_),
      send_memory_(slots_ * slot_bytes_),
      receive_requests_(slots_),
      send_requests_(slots_),
      send_bytes_(slots_) {}

void RingChannel::prepare() {
  receive_mhandle_ =
      links_.register_memory(links_.comm_in(in_), receive_memory_.data(), receive_memory_.size());
  send_mhandle_ =
      links_.register_memory(links_.comm_out(out_), send_memory_.data(), send_memory_.size());
}

void RingChannel::begin(float* data, size_t count) {
  const uint64_t ranks = rank_.count();
  data_ = data;
  count_ = count;
  const size_t even = (count + ranks - 1) / ranks;
  chunk_count_ =
      std::max<size_t>((even + kChunkAlign - 1) / kChunkAlign * kChunkAlign, kChunkAlign);
  chunk_count_ = std::min(chunk_count_, slot_bytes_ / sizeof(float));
  const uint64_t loops = (count + chunk_count_ * ranks - 1) / (chunk_count_ * ranks);
  operations_ = loops * (2 * ranks - 1);
  receives_ = sends_ = loops * (2 * ranks - 2);
  operation_ = posted_ = arrived_ = consumed_ = filled_ = sent_ = completed_ = 0;
}

RingChannel::Chunk RingChannel::chunk_of(uint64_t loop, uint64_t k) const {
  const uint64_t ranks = rank_.count();
  const uint64_t index = (rank_.index() + 2 * ranks - 1 - k) % ranks;
  const size_t from = std::min<size_t>((loop * ranks + index) * chunk_count_, count_);
  return {data_ + from, std::min(chunk_count_, count_ - from)};
}

RingChannel::Chunk RingChannel::chunk_received(uint64_t number) const {
  const uint64_t each = 2 * static_cast<uint64_t>(rank_.count()) - 2;
  return chunk_of(number / each, number % each + 1);
}

unsigned char* RingChannel::slot(std::vector<unsigned char>& memory, uint64_t number) const {
  return memory.data() + (number % slots_) * slot_bytes_;
}

bool RingChannel::post_receive() {
  if (posted_ == receives_ || posted_ - consumed_ == slots_) return false;
  unsigned char* at = slot(receive_memory_, posted_);
  const size_t bytes = chunk_received(posted_).count * sizeof(float);
  tools::fill_guard(at + bytes, std::min(kGuardBytes, slot_bytes_ - bytes));
  lay_canaries(at, bytes);
  void* data = at;
  void* mhandle = receive_mhandle_;
  size_t size = slot_bytes_;
  int tag = kTag;
  void* request = links_.receive(links_.comm_in(in_), 1, &data, &size, &tag, &mhandle);
  if (request == nullptr) return false;
  receive_requests_[posted_++ % slots_] = request;
  return true;
}

bool RingChannel::test_receive() {
  if (arrived_ == posted_) return false;
  Links::Sizes sizes;
  if (!links_.test_receive(receive_requests_[arrived_ % slots_], 1, sizes)) return false;
  const size_t bytes = chunk_received(arrived_).count * sizeof(float);
  if (sizes[0] < 0 || static_cast<size_t>(sizes[0]) != bytes) {
    rank_.fail(tools::kDataWrong, fmt::format("wrong size: receive {} of the ring should be {} "
                                              "bytes, test reported {}",
                                              arrived_, bytes, sizes[0]));
  }
  unsigned char* at = slot(receive_memory_, arrived_);
  if (const auto wrong =
          tools::check_guard(at + bytes, std::min(kGuardBytes, slot_bytes_ - bytes))) {
    rank_.fail(tools::kDataWrong,
               fmt::format("bytes past the received {} of receive {} of the ring "
                           "were overwritten: the first is {}",
                           bytes, arrived_, bytes + *wrong));
  }
  if (const auto left = find_canary(at, bytes)) {
    rank_.fail(tools::kDataWrong, fmt::format("receive {} of the ring was reported done before its "
                                              "data was there: byte {} of {} is not written",
                                              arrived_, *left, bytes));
  }
  ++arrived_;
  rank_.data_arrived(bytes, 1);
  return true;
}

// The part of NCCL's kernel: add, keep, pass on.
bool RingChannel::operate() {
  if (operation_ == operations_) return false;
  const uint64_t ranks = rank_.count();
  const uint64_t k = operation_ % (2 * ranks - 1);
  const bool receives = k > 0;
  const bool sends = k < 2 * ranks - 2;
  if (receives && consumed_ == arrived_) return false;
  if (sends && filled_ - completed_ == slots_) return false;
  const Chunk chunk = chunk_of(operation_ / (2 * ranks - 1), k);
  const size_t bytes = chunk.count * sizeof(float);
  auto* out = reinterpret_cast<float*>(slot(send_memory_, filled_));
  if (!receives) {
    std::memcpy(out, chunk.at, bytes);
  } else {
    const auto* in = reinterpret_cast<const float*>(slot(receive_memory_, consumed_));
    if (k < ranks - 1) {
      for (size_t i = 0; i < chunk.count; ++i) out[i] = in[i] + chunk.at[i];
    } else if (k == ranks - 1) {
      for (size_t i = 0; i < chunk.count; ++i) out[i] = chunk.at[i] = in[i] + chunk.at[i];
    } else {
      std::memcpy(chunk.at, in, bytes);
      if (sends) std::memcpy(out, in, bytes);
    }
    ++consumed_;
  }
  if (sends) send_bytes_[filled_++ % slots_] = bytes;
  ++operation_;
  return true;
}

bool RingChannel::post_send() {
  if (sent_ == filled_) return false;
  void* request = links_.send(links_.comm_out(out_), slot(send_memory_, sent_),
                              send_bytes_[sent_ % slots_], kTag, send_mhandle_);
  if (request == nullptr) return false;
  send_requests_[sent_++ % slots_] = request;
  return true;
}

bool RingChannel::test_send() {
  if (completed_ == sent_) return false;
  Links::Sizes sizes;
  if (!links_.test_send(send_requests_[completed_ % slots_], sizes)) return false;
  const size_t bytes = send_bytes_[completed_ % slots_];
  const size_t part = std::min(bytes, kGuardBytes);
  unsigned char* at = slot(send_memory_, completed_);
  tools::fill_guard(at, part);
  tools::fill_guard(at + bytes - part, part);
  ++completed_;
  return true;
}

bool RingChannel::pump() {
  bool any = false;
  while (post_receive()) any = true;
  while (test_receive()) any = true;
  while (operate()) any = true;
  while (post_send()) any = true;
  while (test_send()) any = true;
  return any;
}

}  // namespace weft::ncclnet
