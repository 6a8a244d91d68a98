// SPDX-License-Identifier: Apache-2.0
//
// What the parent and a rank say to each other, over an inherited SOCK_SEQPACKET pair: a packet a
// message. Ranks publish handles (the parent passes them on to all ranks), meet at barriers, and
// end with a verdict.
//
// The rank's end is polled by whichever of its threads waits, so no thread of its own is needed;
// it is safe to use from all threads. The parent's end never blocks: what does not fit is queued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tools/common/fd.h"

namespace weft::ncclnet {

enum class Word : uint32_t { kPublish = 1, kHandle, kReady, kGo, kVerdict };

struct Packet {
  Word word;
  uint32_t number;  // barrier number, or exit code of a verdict
  uint64_t value;   // barriers: any figure of the rank; the parent answers with the largest
  std::string key;  // of a handle
  std::string text;
};

inline constexpr size_t kMaxPacketBytes = 16384;

std::string encode(const Packet& packet);
std::optional<Packet> decode(const char* data, size_t bytes);

/// The parent's end of one rank's channel.
class ParentChannel {
 public:
  ParentChannel() = default;
  explicit ParentChannel(tools::UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  bool wants_to_write() const { return !queue_.empty(); }
  void send(const Packet& packet);
  void flush();
  /// The next packet, if there is one.
  std::optional<Packet> receive();

 private:
  tools::UniqueFd fd_;
  std::deque<std::string> queue_;
};

/// The rank's end.
class RankChannel {
 public:
  explicit RankChannel(int fd) : fd_(fd) {}

  /// Tells the other ranks `handle` under `key`. False when the parent is gone.
  bool publish(const std::string& key, const void* handle, size_t bytes);
  /// The handle that another rank published under `key`, once it is here.
  std::optional<std::string> find(const std::string& key);
  bool ready(uint32_t barrier, uint64_t value);
  /// The largest value given by any rank, once all are there.
  std::optional<uint64_t> passed(uint32_t barrier);
  void verdict(int code, uint64_t value, const std::string& text);

 private:
  bool send(const Packet& packet);
  void drain();  // with mutex_ held

  int fd_;
  std::mutex mutex_;
  std::map<std::string, std::string> handles_;
  std::map<uint32_t, uint64_t> barriers_;
};

}  // namespace weft::ncclnet
