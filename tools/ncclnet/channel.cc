// SPDX-License-Identifier: Apache-2.0
// Packets between parent and ranks; see channel.h.
#include "tools/ncclnet/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace weft::ncclnet {
namespace {

// Both ends are the same program on the same machine: native byte order.
struct Header {
  uint32_t word;
  uint32_t number;
  uint64_t value;
  uint32_t key_bytes;
  uint32_t text_bytes;
};

}  // namespace

std::string encode(const Packet& packet) {
  const size_t room = kMaxPacketBytes - sizeof(Header);
  Header header{static_cast<uint32_t>(packet.word), packet.number, packet.value,
                static_cast<uint32_t>(std::min<size_t>(packet.key.size(), 64)), 0};
  header.text_bytes = static_cast<uint32_t>(std::min(packet.text.size(), room - header.key_bytes));
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out.append(packet.key, 0, header.key_bytes);
  out.append(packet.text, 0, header.text_bytes);
  return out;
}

std::optional<Packet> decode(const char* data, size_t bytes) {
  Header header;
  if (bytes < sizeof header) return std::nullopt;
  std::memcpy(&header, data, sizeof header);
  if (bytes != sizeof header + header.key_bytes + static_cast<size_t>(header.text_bytes)) {
    return std::nullopt;
  }
  const char* key = data + sizeof header;
  return Packet{static_cast<Word>(header.word), header.number, header.value,
                std::string(key, header.key_bytes),
                std::string(key + header.key_bytes, header.text_bytes)};
}

void ParentChannel::send(const Packet& packet) {
  queue_.push_back(encode(packet));
  flush();
}

void ParentChannel::flush() {
  while (!queue_.empty()) {
    const std::string& front = queue_.front();
    if (::send(fd_.get(), front.data(), front.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno == EAGAIN || errno == ENOBUFS) return;
      if (errno == EINTR) continue;
      queue_.clear();  // the rank is gone; its exit status says why
      return;
    }
    queue_.pop_front();
  }
}

std::optional<Packet> ParentChannel::receive() {
  std::array<char, kMaxPacketBytes> buffer;
  ssize_t got = -1;
  // A rank that ends with packets of ours unread resets the socket: that is told once, before the
  // packets that it had sent itself can be read.
  for (int tries = 0; tries < 4 && got < 0; ++tries) {
    got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno != ECONNRESET && errno != EINTR) break;
  }
  if (got <= 0) return std::nullopt;
  return decode(buffer.data(), static_cast<size_t>(got));
}

bool RankChannel::send(const Packet& packet) {
  const std::string bytes = encode(packet);
  // Blocking is right here: the parent always reads.
  ssize_t sent;
  do {
    sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

void RankChannel::drain() {
  std::array<char, kMaxPacketBytes> buffer;
  for (;;) {
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    auto packet = decode(buffer.data(), static_cast<size_t>(got));
    if (!packet) continue;
    if (packet->word == Word::kHandle) handles_[packet->key] = std::move(packet->text);
    if (packet->word == Word::kGo) barriers_[packet->number] = packet->value;
  }
}

bool RankChannel::publish(const std::string& key, const void* handle, size_t bytes) {
  return send({Word::kPublish, 0, 0, key, std::string(static_cast<const char*>(handle), bytes)});
}

std::optional<std::string> RankChannel::find(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = handles_.find(key);
  if (it == handles_.end()) {
    drain();
    it = handles_.find(key);
  }
  if (it == handles_.end()) return std::nullopt;
  return it->second;
}

bool RankChannel::ready(uint32_t barrier, uint64_t value) {
  return send({Word::kReady, barrier, value, {}, {}});
}

std::optional<uint64_t> RankChannel::passed(uint32_t barrier) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = barriers_.find(barrier);
  if (it == barriers_.end()) {
    drain();
    it = barriers_.find(barrier);
  }
  if (it == barriers_.end()) return std::nullopt;
  return it->second;
}

void RankChannel::verdict(int code, uint64_t value, const std::string& text) {
  send({Word::kVerdict, static_cast<uint32_t>(code), value, {}, text});
}

}  // namespace weft::ncclnet
