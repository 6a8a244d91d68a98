// SPDX-License-Identifier: Apache-2.0
// Endpoints over loopback for tests, and bounded waits.
#include "tests/unit/endpoint/support.h"

#include <dirent.h>
#include <sched.h>

#include "transport/base/random.h"
#include "transport/memory.h"
#include "transport/system/clock.h"

namespace weft::test {
namespace {

HostMemory host_memory;
constexpr Duration kGenerous = seconds(60);

}  // namespace

std::unique_ptr<Endpoint> open_endpoint(const Knobs& knobs) {
  UdpConfig udp;
  udp.address = knobs.address;
  udp.sockets = knobs.sockets;
  udp.mtu = knobs.mtu;
  udp.segment_bytes_override = knobs.segment_bytes;
  Result<std::unique_ptr<Fabric>> fabric = open_udp(udp, host_memory);
  if (!fabric.ok()) {
    ADD_FAILURE() << fabric.status().words();
    return nullptr;
  }
  EndpointOptions options;
  options.device_name = "lo";
  options.address = knobs.address;
  options.probe_sizes = knobs.probe_sizes;
  options.device = knobs.device;
  options.progress = knobs.progress;
  options.peer_timeout = knobs.peer_timeout;
  Result<std::unique_ptr<Endpoint>> endpoint = Endpoint::open(options, std::move(*fabric));
  if (!endpoint.ok()) {
    ADD_FAILURE() << endpoint.status().words();
    return nullptr;
  }
  return std::move(*endpoint);
}

bool poll_until(const std::function<bool()>& step) {
  const Time end = monotonic_now() + kGenerous;
  while (!step()) {
    if (monotonic_now() > end) return false;
    sched_yield();
  }
  return true;
}

Pair connect(Endpoint& from, Endpoint& to, uint64_t from_context, uint64_t to_context,
             int32_t traffic_class) {
  Pair pair;
  Handle handle;
  Result<Listener*> listener = to.listen(to_context, &handle);
  EXPECT_TRUE(listener.ok()) << listener.status().words();
  Result<Connector*> connector = from.start_connect(from_context, traffic_class, handle);
  EXPECT_TRUE(connector.ok()) << connector.status().words();
  if (!listener.ok() || !connector.ok()) return pair;
  bool failed = false;
  EXPECT_TRUE(poll_until([&] {
    if (!pair.send) {
      const Status status = from.connect(*connector, &pair.send);
      EXPECT_TRUE(status.ok()) << status.words();
      failed = !status.ok();
    }
    if (!pair.receive) {
      const Status status = to.accept(*listener, &pair.receive);
      EXPECT_TRUE(status.ok()) << status.words();
    }
    return failed || (pair.send && pair.receive);
  }));
  to.close_listener(*listener);
  return pair;
}

Status wait(Endpoint& endpoint, Request* request, uint64_t* sizes) {
  Status status;
  EXPECT_TRUE(poll_until([&] {
    bool done = false;
    status = endpoint.test(request, &done, sizes);
    return done;
  })) << "a request was never completed";
  return status;
}

Request* post_send(Endpoint& endpoint, SendFlow* flow, const std::byte* data, uint64_t bytes,
                   const Registration* registration, int32_t tag) {
  Request* request = nullptr;
  EXPECT_TRUE(poll_until([&] {
    const Answer answer = endpoint.send(flow, data, bytes, tag, registration, &request);
    return answer != Answer::kAgain;
  })) << "a send was never matched";
  return request;
}

Request* post_receive(Endpoint& endpoint, ReceiveFlow* flow, std::byte* data, uint64_t bytes,
                      const Registration* registration, int32_t tag) {
  Request* request = nullptr;
  const ReceiveBuffer part{data, bytes, tag, registration};
  EXPECT_EQ(endpoint.receive(flow, std::span(&part, 1), &request), Answer::kPosted);
  return request;
}

std::vector<std::byte> pattern(size_t bytes, uint64_t seed) {
  std::vector<std::byte> out(bytes);
  Random random(seed);
  for (auto& b : out) b = static_cast<std::byte>(random.next());
  return out;
}

void transfer(Endpoint& from, Endpoint& to, const Pair& flow, size_t bytes) {
  const std::vector<std::byte> source = pattern(bytes, bytes + 1);
  std::vector<std::byte> sink(bytes);
  Registration* from_registration = nullptr;
  Registration* to_registration = nullptr;
  if (bytes > 0) {
    auto a = from.register_memory(flow.send, {const_cast<std::byte*>(source.data()), bytes});
    auto b = to.register_memory(flow.receive, {sink.data(), bytes});
    ASSERT_TRUE(a.ok()) << a.status().words();
    ASSERT_TRUE(b.ok()) << b.status().words();
    from_registration = *a;
    to_registration = *b;
  }
  Request* in = post_receive(to, flow.receive, sink.data(), bytes, to_registration);
  ASSERT_TRUE(in);
  Request* out = post_send(from, flow.send, source.data(), bytes, from_registration);
  ASSERT_TRUE(out);
  uint64_t size = 12345;
  const Status received = wait(to, in, &size);
  EXPECT_TRUE(received.ok()) << received.words();
  const Status sent = wait(from, out);
  EXPECT_TRUE(sent.ok()) << sent.words();
  EXPECT_EQ(size, bytes);
  EXPECT_TRUE(sink == source) << bytes << " bytes arrived wrong";
  if (bytes > 0) {
    from.deregister(from_registration);
    to.deregister(to_registration);
  }
}

int open_descriptors() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

}  // namespace weft::test
