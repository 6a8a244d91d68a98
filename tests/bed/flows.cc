// SPDX-License-Identifier: Apache-2.0
// Two endpoints in two network namespaces, which open flows when they are told: for set_up_test.py.
//
//   bed_flows NAMESPACE1 ADDRESS1 NAMESPACE2 ADDRESS2
//
// reads commands from its input, one a line, and answers each with one line of key=value:
//
//   open      one more flow from 1 to 2, over the connection that is there
//   back      one from 2 to 1
//   both      one each way, at once
//   ask       begins a flow from 1 to 2, which nobody accepts yet
//   accept    completes it
//   transfer  a megabyte over the first flow, every byte compared
//   facts     connections of each end, intruders at the second, bytes in a packet of the first
//
// A thread lives in one namespace, and what it opens stays there: a thread that drives the second
// end enters its namespace first. Every wait is bounded. Exit code 0: its input ended; else it says
// why.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>

#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "multipath/endpoint/endpoint.h"
#include "transport/memory.h"
#include "transport/system/clock.h"
#include "transport/system/file_descriptor.h"
#include "transport/udp/udp.h"

namespace weft {
namespace {

constexpr Duration kPatience = seconds(20);
constexpr uint64_t kContext = 1;
constexpr size_t kBytes = 1 << 20;

HostMemory host_memory;

bool enter(const std::string& name) {
  const FileDescriptor fd(::open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  return fd && ::setns(fd.get(), CLONE_NEWNET) == 0;
}

[[noreturn]] void fail(const std::string& words) {
  std::printf("failed: %s\n", words.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

struct End {
  std::string name;
  IpAddress address;
  std::unique_ptr<Endpoint> endpoint;
};

void open_end(End& end) {
  if (!enter(end.name)) fail("cannot enter " + end.name);
  UdpConfig udp;
  udp.address = end.address;
  udp.mtu = 1500;
  auto fabric = open_udp(udp, host_memory);
  if (!fabric.ok()) fail(fabric.status().words());
  EndpointOptions options;
  options.device_name = end.name;
  options.address = end.address;
  options.probe_sizes = true;
  auto endpoint = Endpoint::open(options, std::move(*fabric));
  if (!endpoint.ok()) fail(endpoint.status().words());
  end.endpoint = std::move(*endpoint);
}

// A flow on its way from one end to the other. The two halves are driven by two threads.
struct Opening {
  Listener* listener = nullptr;
  Connector* connector = nullptr;
  SendFlow* send = nullptr;
  ReceiveFlow* receive = nullptr;
};

template <typename Step>
void until(const char* what, Step step) {
  const Time end = monotonic_now() + kPatience;
  while (!step()) {
    if (monotonic_now() > end) fail(std::string(what) + ": nothing within 20 s");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void drive_connect(End& from, Opening& flow) {
  until("connect", [&] {
    const Status status = from.endpoint->connect(flow.connector, &flow.send);
    if (!status.ok()) fail(status.words());
    return flow.send != nullptr;
  });
}

void drive_accept(End& to, Opening& flow) {
  until("accept", [&] {
    const Status status = to.endpoint->accept(flow.listener, &flow.receive);
    if (!status.ok()) fail(status.words());
    return flow.receive != nullptr;
  });
  to.endpoint->close_listener(flow.listener);
}

class Bed {
 public:
  Bed(End one, End two) : ends_{std::move(one), std::move(two)} {
    open_end(ends_[1]);
    open_end(ends_[0]);  // this thread stays there
  }

  // Whether there was such a command.
  bool carry_out(const std::string& command) {
    const Time begin = monotonic_now();
    if (command == "open") {
      open({{0, 1}});
    } else if (command == "back") {
      open({{1, 0}});
    } else if (command == "both") {
      open({{0, 1}, {1, 0}});
    } else if (command == "ask") {
      ask();
    } else if (command == "accept") {
      complete();
    } else if (command == "transfer") {
      transfer();
    } else if (command != "facts") {
      return false;
    }
    facts(monotonic_now() - begin);
    return true;
  }

 private:
  struct Direction {
    int from, to;
  };

  // What an end does, in a thread of its namespace.
  template <typename Work>
  std::thread on(int which, Work work) {
    return std::thread([this, which, work] {
      if (!enter(ends_[which].name)) fail("cannot enter " + ends_[which].name);
      work();
    });
  }

  Opening begin(Direction d) {
    Opening flow;
    Handle handle;
    auto listener = ends_[d.to].endpoint->listen(kContext, &handle);
    if (!listener.ok()) fail(listener.status().words());
    flow.listener = *listener;
    on(d.from, [&] {
      auto connector = ends_[d.from].endpoint->start_connect(kContext, 0, handle);
      if (!connector.ok()) fail(connector.status().words());
      flow.connector = *connector;
    }).join();
    return flow;
  }

  void open(const std::vector<Direction>& directions) {
    std::vector<Opening> flows;
    for (const Direction& d : directions) flows.push_back(begin(d));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < flows.size(); ++i) {
      const Direction d = directions[i];
      Opening& flow = flows[i];
      threads.push_back(on(d.from, [this, d, &flow] { drive_connect(ends_[d.from], flow); }));
      threads.push_back(on(d.to, [this, d, &flow] { drive_accept(ends_[d.to], flow); }));
    }
    for (std::thread& thread : threads) thread.join();
    if (!first_.send && directions[0].from == 0) first_ = flows[0];
  }

  void ask() { asked_ = begin({0, 1}); }

  void complete() {
    std::thread other = on(1, [&] { drive_accept(ends_[1], asked_); });
    drive_connect(ends_[0], asked_);
    other.join();
  }

  void transfer() {
    std::vector<std::byte> source(kBytes), sink(kBytes);
    for (size_t i = 0; i < kBytes; ++i) source[i] = static_cast<std::byte>(i * 31 + turn_);
    ++turn_;
    Endpoint& one = *ends_[0].endpoint;
    Endpoint& two = *ends_[1].endpoint;
    auto from = one.register_memory(first_.send, {source.data(), kBytes});
    auto to = two.register_memory(first_.receive, {sink.data(), kBytes});
    if (!from.ok() || !to.ok()) fail("cannot register memory");
    Request* in = nullptr;
    Request* out = nullptr;
    const ReceiveBuffer part{sink.data(), kBytes, 0, *to};
    if (two.receive(first_.receive, std::span(&part, 1), &in) != Answer::kPosted)
      fail("no receive");
    until("send", [&] {
      return one.send(first_.send, source.data(), kBytes, 0, *from, &out) != Answer::kAgain;
    });
    if (!out) fail(one.failure_of(*first_.send).words());
    bool sent = false, received = false;
    until("transfer", [&] {
      if (!sent && !one.test(out, &sent, nullptr).ok()) fail("the send failed");
      if (!received && !two.test(in, &received, nullptr).ok()) fail("the receive failed");
      return sent && received;
    });
    if (std::memcmp(source.data(), sink.data(), kBytes) != 0) fail("what arrived is not what left");
    one.deregister(*from);
    two.deregister(*to);
  }

  void facts(Duration took) {
    const EndpointStatistics one = ends_[0].endpoint->statistics();
    const EndpointStatistics two = ends_[1].endpoint->statistics();
    uint64_t bytes = 0, packets = 0;
    for (const PathCounters& path : one.paths) bytes += path.bytes, packets += path.packets;
    std::printf("ms=%.1f connections=%zu intruders=%llu packet=%llu\n",
                static_cast<double>(took.ns) / 1e6, std::max(one.connections, two.connections),
                static_cast<unsigned long long>(two.intruders),
                static_cast<unsigned long long>(packets == 0 ? 0 : bytes / packets));
    std::fflush(stdout);
  }

  End ends_[2];
  Opening first_, asked_;
  size_t turn_ = 0;
};

IpAddress address_of(const char* text) {
  IpAddress out;
  if (inet_pton(AF_INET, text, out.bytes.data()) != 1) fail(std::string(text) + " is no address");
  return out;
}

int run(int count, char** words) {
  if (count != 5) fail("usage: bed_flows NAMESPACE1 ADDRESS1 NAMESPACE2 ADDRESS2");
  Bed bed({words[1], address_of(words[2]), nullptr}, {words[3], address_of(words[4]), nullptr});
  for (std::string command; std::getline(std::cin, command);) {
    if (!bed.carry_out(command)) fail("no such command: " + command);
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int count, char** words) { return weft::run(count, words); }
