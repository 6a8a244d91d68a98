// SPDX-License-Identifier: Apache-2.0
//
// What plain UDP sockets carry on this machine when nobody looks at the bytes: the ceiling that
// Weft's UDP fabric is measured against by bench/peers/run.
//
//   udp_ceiling receive --at IP:PORT --timeout S              ends with its sender
//   udp_ceiling send --at IP:PORT --payload N --source B --seconds S     N: bytes of a datagram
//
// send: one connected socket, a buffer of B bytes that is read round and round, trains of as many
// datagrams as GSO takes in one go, 8 to a sendmmsg.
// receive: one socket with GRO, recvmmsg of up to 16 trains into the same buffers again and again;
// nothing is looked at or copied further.
// An 8-byte answer every 256 KB bounds what is under way to 4 MB, since without it most of what a
// sender makes would be dropped at the receiver: that would lower the ceiling. What does not arrive
// is not sent again.
//
// One thread a process, everything bounded by --seconds and --timeout. Ends with one line of JSON;
// exit code 0, 2 for usage, 4 when a call failed, 3 when time ran out.
#include <netinet/udp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "bench/peers/plain_sockets.h"

namespace weft::peers {
namespace {

constexpr size_t kWindowBytes = 4 << 20;
constexpr size_t kAnswerEvery = 256 << 10;
constexpr size_t kMaxTrain = 64;  // datagrams in one GSO send
constexpr unsigned kSendBatch = 8, kReceiveBatch = 16;

int receive(const Arguments& a) {
  const int fd = udp_socket();
  option(fd, IPPROTO_UDP, UDP_GRO, 1, "UDP_GRO");
  const timeval patience{0, 50'000};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  bind_to(fd, a.at);
  std::vector<char> buffer(kReceiveBatch * 65536);
  std::array<mmsghdr, kReceiveBatch> messages{};
  std::array<iovec, kReceiveBatch> pieces;
  sockaddr_in peer{};
  for (unsigned i = 0; i < kReceiveBatch; ++i) {
    pieces[i] = {buffer.data() + i * 65536, 65536};
    messages[i].msg_hdr.msg_iov = &pieces[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  uint64_t total = 0, answered = 0, trains = 0, first_bytes = 0;
  Clock::time_point first, last;
  const auto end = in(a.timeout);
  int quiet = 0;
  for (bool over = false; !over;) {
    messages[0].msg_hdr.msg_name = &peer;
    messages[0].msg_hdr.msg_namelen = sizeof peer;
    const int got = ::recvmmsg(fd, messages.data(), kReceiveBatch, MSG_WAITFORONE, nullptr);
    if (got < 0 && !again()) fail("recvmmsg");
    const auto now = Clock::now();
    if (now > end) time_out();
    uint64_t bytes = 0;
    for (int i = 0; i < got; ++i) {
      over = over || messages[static_cast<size_t>(i)].msg_len == 1;
      bytes += messages[static_cast<size_t>(i)].msg_len;
    }
    if (got > 0 && !over) {
      if (total == 0) {
        first = now;
        first_bytes = bytes;  // what came before the clock started
      }
      total += bytes;
      trains += static_cast<uint64_t>(got);
      last = now;
    }
    quiet = got > 0 ? 0 : quiet + 1;
    if (total != 0 && quiet > 20) over = true;  // the sender is gone, its farewell was lost
    if (total - answered < kAnswerEvery && (got > 0 || total == answered)) continue;
    answered = total;
    ::sendto(fd, &total, sizeof total, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&peer),
             sizeof peer);
  }
  const double seconds = std::chrono::duration<double>(last - first).count();
  std::printf("{\"bytes\":%llu,\"seconds\":%.6f,\"goodput_bps\":%.0f,\"bytes_per_read\":%.0f}\n",
              static_cast<unsigned long long>(total), seconds,
              seconds > 0 ? static_cast<double>(total - first_bytes) * 8 / seconds : 0,
              trains ? static_cast<double>(total) / static_cast<double>(trains) : 0);
  return tools::kGood;
}

// Takes the receiver's answers; true when there were any.
bool take_answers(int fd, uint64_t& acked) {
  bool any = false;
  for (uint64_t answer; ::recv(fd, &answer, sizeof answer, MSG_DONTWAIT) == sizeof answer;) {
    acked = std::max(acked, answer);
    any = true;
  }
  return any;
}

int send(const Arguments& a) {
  const int fd = udp_socket();
  connect_to(fd, a.at);
  const size_t in_train = std::min(kMaxTrain, kMaxDatagram / a.payload);
  if (in_train > 1)
    option(fd, IPPROTO_UDP, UDP_SEGMENT, static_cast<int>(a.payload), "UDP_SEGMENT");
  const size_t train = in_train * a.payload;
  std::vector<char> buffer(std::max(a.source, train), 7);
  std::array<mmsghdr, kSendBatch> messages{};
  std::array<iovec, kSendBatch> pieces;
  size_t at = 0;
  uint64_t sent = 0, acked = 0, lost = 0;
  const auto end = in(a.seconds);
  while (Clock::now() < end) {
    // Answers count what arrived. What was lost is known by silence, and no longer under way.
    if (sent - lost - acked > kWindowBytes / 2) take_answers(fd, acked);
    while (sent > lost + acked && sent - lost - acked > kWindowBytes && Clock::now() < end) {
      pollfd waiting{fd, POLLIN, 0};
      ::poll(&waiting, 1, 20);
      if (!take_answers(fd, acked)) lost = sent - std::min(acked, sent);
    }
    for (unsigned i = 0; i < kSendBatch; ++i) {
      if (at + train > buffer.size()) at = 0;
      pieces[i] = {buffer.data() + at, train};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      at += train;
    }
    const int went = ::sendmmsg(fd, messages.data(), kSendBatch, 0);
    if (went < 0 && !again() && errno != ENOBUFS) fail("sendmmsg");
    if (went > 0) sent += static_cast<uint64_t>(went) * train;
  }
  option(fd, IPPROTO_UDP, UDP_SEGMENT, 0, "UDP_SEGMENT");
  for (int i = 0; i < 10; ++i) {
    ::usleep(10'000);
    (void)!::send(fd, "", 1, MSG_DONTWAIT);
  }
  std::printf("{\"bytes\":%llu,\"datagram\":%zu,\"train\":%zu}\n",
              static_cast<unsigned long long>(sent), a.payload, in_train);
  return tools::kGood;
}

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  return weft::peers::run_program(
      argc, argv, {{"receive", weft::peers::receive}, {"send", weft::peers::send}},
      "udp_ceiling receive --at IP:PORT [--timeout S]\n"
      "       udp_ceiling send --at IP:PORT [--payload N] [--source B] [--seconds S]\n");
}
