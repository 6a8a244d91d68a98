// SPDX-License-Identifier: Apache-2.0
// Two hosts whose interfaces take more than the way between them:
//
//   h1 ---9000--- r1 ---1400--- r2 ---9000--- h2
//
// four network namespaces without names, so that they go with this process however it ends. Needs
// root; skipped where it cannot be built. A thread is in one namespace at a time, and what it opens
// stays there: so b is opened in h2, and everything else happens in h1.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/unit/endpoint/support.h"
#include "transport/system/clock.h"
#include "transport/system/file_descriptor.h"

namespace weft::test {
namespace {

bool run(const std::string& command) {
  return std::system((command + " 2>/dev/null").c_str()) == 0;
}

FileDescriptor this_namespace() {
  return FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

class PathMtu : public ::testing::TestWithParam<bool> {  // IPv6?
 protected:
  void SetUp() override {
    home_ = this_namespace();
    if (geteuid() != 0 || !home_ || !build()) {
      GTEST_SKIP() << "network namespaces cannot be made here (needs root and iproute2)";
    }
  }
  void TearDown() override {
    if (home_) (void)::setns(home_.get(), CLONE_NEWNET);
  }

  bool enter(int host) { return ::setns(hosts_[host].get(), CLONE_NEWNET) == 0; }
  // For ip(8), which is another process.
  std::string path(int host) const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(hosts_[host].get());
  }
  static std::string text(int net, int host) {
    return GetParam() ? "fd00:" + std::to_string(net) + "::" + std::to_string(host)
                      : "10.77." + std::to_string(net) + "." + std::to_string(host);
  }
  static IpAddress address(int net, int host) {
    IpAddress out = IpAddress::v4(10, 77, static_cast<uint8_t>(net), static_cast<uint8_t>(host));
    if (!GetParam()) return out;
    out = {true, {0xfd, 0}};
    out.bytes[3] = static_cast<uint8_t>(net), out.bytes[15] = static_cast<uint8_t>(host);
    return out;
  }

  // Link n joins host n to host n + 1: addresses .1 and .2 of net n.
  bool build() {
    for (FileDescriptor& host : hosts_) {
      if (::unshare(CLONE_NEWNET) != 0 || !(host = this_namespace())) return false;
      if (!run("ip link set lo up")) return false;
      std::ofstream("/proc/sys/net/ipv4/ip_forward") << 1;
      std::ofstream("/proc/sys/net/ipv6/conf/all/forwarding") << 1;
    }
    const int mtus[] = {9000, 1400, 9000};
    for (int n = 0; n < 3; ++n) {
      const std::string mtu = " mtu " + std::to_string(mtus[n]);
      if (!enter(n) || !run("ip link add right" + mtu + " type veth peer name left" + mtu +
                            " netns " + path(n + 1))) {
        return false;
      }
      if (!attach("right", text(n, 1)) || !enter(n + 1) || !attach("left", text(n, 2)))
        return false;
    }
    const auto route = [&](int host, const std::string& by) {
      return enter(host) && run("ip route add default via " + by);
    };
    // Behind r1 there is only the way right, and h1 is on its own link.
    return route(0, text(0, 2)) && route(1, text(1, 2)) && route(2, text(1, 1)) &&
           route(3, text(2, 1)) && enter(0);
  }
  static bool attach(const std::string& link, const std::string& at) {
    const std::string bits = GetParam() ? "/64 nodad" : "/24";
    return run("ip address add " + at + bits + " dev " + link) &&
           run("ip link set " + link + " up");
  }

  std::unique_ptr<Endpoint> open(int host, const IpAddress& at, bool probe_sizes) {
    Knobs knobs;
    knobs.address = at;
    knobs.mtu = 9000;
    knobs.probe_sizes = probe_sizes;
    knobs.peer_timeout = seconds(10);  // new IPv6 links take two of them to be of use
    EXPECT_TRUE(enter(host));
    auto out = open_endpoint(knobs);
    EXPECT_TRUE(enter(0));
    return out;
  }

  // Bytes of payload a packet, of what an endpoint has sent.
  static uint64_t largest_mean(Endpoint& endpoint) {
    uint64_t most = 0;
    for (const PathCounters& p : endpoint.statistics().paths) {
      if (p.packets != 0) most = std::max(most, p.bytes / p.packets);
    }
    return most;
  }

  FileDescriptor home_;
  FileDescriptor hosts_[4];  // h1, r1, r2, h2
};

TEST_P(PathMtu, IsFoundBeforeTheFirstByte) {
  auto a = open(0, address(0, 1), true);
  auto b = open(3, address(2, 2), true);
  ASSERT_TRUE(a && b);
  const Pair there = connect(*a, *b);
  ASSERT_TRUE(there.send && there.receive);
  ASSERT_NO_FATAL_FAILURE(transfer(*a, *b, there, 4 << 20));
  EXPECT_GT(largest_mean(*a), 1000u);
  EXPECT_LE(largest_mean(*a), 1280u);
  // A second connection, the other way, finds the same.
  ASSERT_TRUE(enter(3)) << "where b dials from";
  const Pair back = connect(*b, *a, 2, 2);
  ASSERT_TRUE(back.send && back.receive);
  ASSERT_NO_FATAL_FAILURE(transfer(*b, *a, back, 1 << 20));
  EXPECT_LE(largest_mean(*b), 1280u);
}

TEST_P(PathMtu, UnknownMeansThatNothingLongArrives) {
  // Sent from until the endpoint ends.
  std::vector<std::byte> source = pattern(1 << 20, 1), sink(1 << 20);
  auto a = open(0, address(0, 1), false);
  auto b = open(3, address(2, 2), false);
  ASSERT_TRUE(a && b);
  const Pair flow = connect(*a, *b);
  ASSERT_TRUE(flow.send && flow.receive) << "small packets and TCP must get through";
  auto from = a->register_memory(flow.send, {source.data(), source.size()});
  auto to = b->register_memory(flow.receive, {sink.data(), sink.size()});
  ASSERT_TRUE(from.ok() && to.ok());
  Request* in = post_receive(*b, flow.receive, sink.data(), sink.size(), *to);
  ASSERT_TRUE(post_send(*a, flow.send, source.data(), source.size(), *from));
  const Time end = monotonic_now() + milliseconds(500);
  bool done = false;
  while (!done && monotonic_now() < end) (void)b->test(in, &done, nullptr);
  EXPECT_FALSE(done) << "the way carries everything: the other test proves nothing";
}

TEST_P(PathMtu, IsNotLookedForByWhoDoesNotWantIt) {
  auto a = open(0, address(0, 1), true);
  auto b = open(3, address(2, 2), false);  // returns no probes
  ASSERT_TRUE(a && b);
  const Pair flow = connect(*a, *b);
  EXPECT_TRUE(flow.send && flow.receive);
}

INSTANTIATE_TEST_SUITE_P(Families, PathMtu, ::testing::Values(false, true),
                         [](const auto& of) { return of.param ? "ipv6" : "ipv4"; });

}  // namespace
}  // namespace weft::test
