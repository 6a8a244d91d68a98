// SPDX-License-Identifier: Apache-2.0
//
// The one-way time of a small message over plain sockets, UDP or TCP: half a round trip between two
// threads that spin on non-blocking sockets and do nothing else.
//
//   ping_pong pong [--tcp] --at IP:PORT --bytes B --timeout S
//   ping_pong ping [--tcp] --at IP:PORT --bytes B --seconds S
//
// A UDP message that gets no answer within 0.1 s is counted as lost and not timed. One thread a
// process, everything bounded by --seconds and --timeout. Ends with one line of JSON; exit code 0,
// 2 for usage, 4 when a call failed, 3 when time ran out.
#include <netinet/tcp.h>
#include <poll.h>

#include <cstdio>
#include <vector>

#include "bench/peers/plain_sockets.h"
#include "tools/ncclnet/time_histogram.h"

namespace weft::peers {
namespace {

constexpr size_t kWarmUp = 100;  // rounds that are not timed, or a tenth of the time
constexpr int kSpins = 256;      // between looks at the clock, where nothing has come

// A connected, non-blocking socket: the listening end of TCP waits for its one client.
int latency_socket(const Arguments& a, bool listens) {
  int fd = a.tcp ? ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : udp_socket();
  if (fd < 0) fail("socket");
  if (!listens) connect_to(fd, a.at);
  if (listens && a.tcp) option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
  if (listens) bind_to(fd, a.at);
  if (listens && a.tcp) {
    if (::listen(fd, 1) != 0) fail("listen");
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(a.timeout * 1000)) != 1) time_out();
    fd = ::accept(fd, nullptr, nullptr);
    if (fd < 0) fail("accept");
  }
  if (a.tcp) option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  return fd;
}

// Spins until `bytes` are there. False: the other end has closed, or `end` has come.
bool take(int fd, char* to, size_t bytes, Clock::time_point end, sockaddr_in* from) {
  size_t have = 0;
  for (int spins = 1;; ++spins) {
    socklen_t size = sizeof *from;
    const ssize_t got = ::recvfrom(fd, to + have, bytes - have, MSG_DONTWAIT,
                                   reinterpret_cast<sockaddr*>(from), from ? &size : nullptr);
    if (got == 0) return false;  // closed; or, on UDP, the farewell
    if (got < 0 && !again()) fail("recv");
    if (got > 0) have += static_cast<size_t>(got);
    if (have == bytes) return true;
    if (spins % kSpins == 0 && Clock::now() > end) return false;
  }
}

int pong(const Arguments& a) {
  const int fd = latency_socket(a, true);
  std::vector<char> data(a.bytes);
  sockaddr_in peer{};
  const auto end = in(a.timeout);
  while (take(fd, data.data(), data.size(), end, a.tcp ? nullptr : &peer)) {
    const auto* to = a.tcp ? nullptr : reinterpret_cast<const sockaddr*>(&peer);
    (void)!::sendto(fd, data.data(), data.size(), MSG_NOSIGNAL, to, a.tcp ? 0 : sizeof peer);
  }
  if (Clock::now() > end) time_out();
  std::printf("{}\n");
  return tools::kGood;
}

int ping(const Arguments& a) {
  const int fd = latency_socket(a, false);
  std::vector<char> data(a.bytes, 7);
  ncclnet::TimeHistogram times;
  const auto end = in(a.seconds), warm = in(a.seconds / 10);
  size_t lost = 0;
  for (size_t round = 0; Clock::now() < end; ++round) {
    const auto start = Clock::now();
    if (::send(fd, data.data(), data.size(), MSG_NOSIGNAL) < 0 && !again()) fail("send");
    if (!take(fd, data.data(), data.size(), in(a.tcp ? a.timeout : 0.1), nullptr)) {
      if (a.tcp) time_out();
      ++lost;
      continue;
    }
    if (round >= kWarmUp || Clock::now() > warm)
      times.add((Clock::now() - start) / std::chrono::nanoseconds(1));
  }
  if (!a.tcp) {
    for (int i = 0; i < 3; ++i) (void)!::send(fd, "", 0, MSG_DONTWAIT);
  }
  const auto us = [&](double share) {
    return static_cast<double>(times.percentile_ns(share)) / 2e3;
  };
  std::printf("{\"round_trips\":%llu,\"lost\":%zu,\"p50_us\":%.2f,\"p99_us\":%.2f}\n",
              static_cast<unsigned long long>(times.count()), lost, us(0.5), us(0.99));
  return times.count() > 0 ? tools::kGood : tools::kTimedOut;
}

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  return weft::peers::run_program(
      argc, argv, {{"pong", weft::peers::pong}, {"ping", weft::peers::ping}},
      "ping_pong pong [--tcp] --at IP:PORT [--bytes B] [--timeout S]\n"
      "       ping_pong ping [--tcp] --at IP:PORT [--bytes B] [--seconds S] [--timeout S]\n");
}
