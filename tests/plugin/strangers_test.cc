// SPDX-License-Identifier: Apache-2.0
// Whatever the network sends to a port of ours: who belongs here sees nothing of it, nothing stays.
//
// A thread moves verified messages all the while. Ten thousand strangers call, every port of ours
// in turn; then descriptors and bytes of heap are what they were. Replaying needs a raw socket.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "tests/plugin/holdings.h"
#include "tests/plugin/net.h"

namespace weft::plugin_test {
namespace {

constexpr int kStrangers = 10'000;
constexpr int kStrangerPatienceMs = 1000;  // the peer time-out, see main()
constexpr size_t kHeapSlack = 64 << 10;    // what the C library may hold back

sockaddr_in loopback(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

// Verified messages over one pair until it is told to stop.
class Traffic {
 public:
  explicit Traffic(Pair& pair) : pair_(pair), thread_([this] { run(); }) {}
  ~Traffic() { stop(); }
  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int messages() const { return messages_; }

 private:
  void run() {
    constexpr size_t kBytes = 40'000;
    Buffer from(kBytes), to(kBytes);
    Registered source(pair_.send(), from), sink(pair_.receive(), to);
    for (uint64_t i = 0; !over_ && !testing::Test::HasFailure(); ++i, ++messages_) {
      const size_t bytes = i % 3 == 0 ? i % 100 : kBytes - i % 1000;
      from.fill(i, 0, bytes);
      void* receive = post_receive(pair_.receive(), to.data(), kBytes, 0, sink.get());
      void* send = post_send(pair_.send(), from.data(), bytes, 0, source.get());
      int size = -1;
      ASSERT_EQ(wait(receive, &size), nccl::kSuccess) << take_log();
      ASSERT_EQ(wait(send), nccl::kSuccess) << take_log();
      ASSERT_EQ(static_cast<size_t>(size), bytes);
      ASSERT_EQ(to.matches(i, 0, bytes), bytes) << "message " << i;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  Pair& pair_;
  std::atomic<bool> over_{false};
  std::atomic<int> messages_{0};
  std::thread thread_;
};

class PluginStrangers : public testing::Test {
 protected:
  PluginStrangers() : pair_(context_, context_), udp_(udp_ports(::getpid())) {
    for (const int port : tcp_listening_ports(::getpid())) tcp_.push_back(port);
  }
  void SetUp() override {
    ASSERT_TRUE(pair_.up());
    ASSERT_FALSE(tcp_.empty());
    ASSERT_FALSE(udp_.empty());
    take_log();
  }

  // `call` for every stranger, a tenth of them to warm up; then everything must be as it was.
  template <class Call>
  void receive_strangers(Call&& call) {
    Traffic traffic(pair_);
    int descriptors_before = 0;
    size_t heap_before = 0, log_bytes = 0;
    for (int i = 0; i < kStrangers + kStrangers / 10; ++i) {
      if (i == kStrangers / 10) {
        settle();
        descriptors_before = open_descriptors();
        heap_before = heap_bytes();
      }
      call(i);
      if (i % 1000 == 500) {  // and those who belong here still find the way in
        Pair fresh(context_, context_);
        ASSERT_TRUE(fresh.up());
      }
      if (i % 100 == 0) log_bytes += take_log().size();
      if (HasFailure()) return;
    }
    settle();
    const int before = traffic.messages();
    EXPECT_TRUE(eventually([&] { return traffic.messages() > before + 10; }));
    EXPECT_TRUE(eventually([&] { return open_descriptors() <= descriptors_before; }, 5000))
        << open_descriptors() << " descriptors, " << descriptors_before << " before";
    EXPECT_TRUE(eventually([&] { return heap_bytes() < heap_before + kHeapSlack; }, 5000))
        << heap_bytes() << " bytes of heap, " << heap_before << " before";
    EXPECT_LT(log_bytes, 100'000u) << "strangers can fill the log";
    traffic.stop();
  }

  // Whoever was left half-way is given up.
  static void settle() {
    std::this_thread::sleep_for(std::chrono::milliseconds(kStrangerPatienceMs + 200));
  }

  Context context_;
  Pair pair_;
  std::set<int> udp_;
  std::vector<int> tcp_;
  std::mt19937_64 random_{20261204};

  std::string noise(size_t bytes) {
    std::string text(bytes, '\0');
    for (char& c : text) c = static_cast<char>(random_());
    return text;
  }
};

// What scanners, browsers and load balancers say first; the rest is not their fault.
std::string greeting(int i, const std::string& noise) {
  using namespace std::string_literals;
  switch (i % 8) {
    case 0: return "";                                                       // a port scan
    case 1: return "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s + noise;  // TLS ClientHello
    case 2: return "GET / HTTP/1.1\r\nHost: node17\r\nUser-Agent: health/1.0\r\n\r\n";
    case 3: return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + noise;
    case 4: return "SSH-2.0-OpenSSH_9.2p1\r\n";
    case 5: return "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n";
    case 6: return noise;
    default: return std::string(20, '\0') + noise;
  }
}

TEST_F(PluginStrangers, OnTcpLeaveNothingAndDisturbNobody) {
  std::vector<int> held;  // half-open and slow ones: connected, and in no hurry
  receive_strangers([&](int i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in to = loopback(tcp_[static_cast<size_t>(i) % tcp_.size()]);
    ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const std::string text = greeting(i / 4, noise(random_() % 3000));
    if (i % 4 == 1) {  // one byte at a time, and never the last
      for (size_t at = 0; at + 1 < text.size() && at < 20; ++at) {
        (void)::send(fd, text.data() + at, 1, MSG_NOSIGNAL);
      }
    } else {
      (void)::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    }
    if (i % 4 == 2) {  // gone with a reset
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    held.push_back(fd);
    const bool in_no_hurry = i % 4 == 1 || i % 16 == 3;
    if (!in_no_hurry) held.pop_back(), ::close(fd);
    if (held.size() < 300 && (i + 1) % (kStrangers / 10) != 0) return;
    for (const int each : held) ::close(each);
    held.clear();
  });
  for (const int each : held) ::close(each);
}

TEST_F(PluginStrangers, OnUdpLeaveNothingAndDisturbNobody) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const std::vector<int> ports(udp_.begin(), udp_.end());
  receive_strangers([&](int i) {
    std::string text = noise(i % 50 == 0 ? 60'000 : random_() % 1500);
    // Some look like ours up to the name and the secret: magic, version, kind, a small name.
    if (i % 3 == 0 && text.size() >= 16) {
      const unsigned char start[8] = {0x57, 0x46, 1, static_cast<unsigned char>(1 + i % 3),
                                      static_cast<unsigned char>(i % 5)};
      std::memcpy(text.data(), start, sizeof start);
    }
    const sockaddr_in to = loopback(ports[static_cast<size_t>(i) % ports.size()]);
    (void)::sendto(fd, text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                   sizeof to);
  });
  ::close(fd);
}

// Datagrams of this very traffic, as somebody on the way would see them.
class Tap {
 public:
  explicit Tap(const std::set<int>& ports) : ports_(ports) {
    fd_ = ::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_IP));
    sockaddr_ll at{};
    at.sll_family = AF_PACKET;
    at.sll_protocol = htons(ETH_P_IP);
    at.sll_ifindex = static_cast<int>(::if_nametoindex("lo"));
    if (fd_ >= 0) (void)::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at);
    raw_ = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
  }
  ~Tap() {
    ::close(fd_);
    ::close(raw_);
  }
  bool works() const { return fd_ >= 0 && raw_ >= 0; }

  // The next datagram to one of our ports, with its IP header; empty when there is none now.
  std::string next() {
    std::string packet(65'536, '\0');
    for (int i = 0; i < 100; ++i) {
      const ssize_t n = ::recv(fd_, packet.data(), packet.size(), 0);
      if (n < static_cast<ssize_t>(sizeof(iphdr) + sizeof(udphdr))) return "";
      const auto* udp = reinterpret_cast<const udphdr*>(packet.data() + sizeof(iphdr));
      if (static_cast<unsigned char>(packet[9]) != IPPROTO_UDP) continue;
      if (ports_.count(ntohs(udp->dest)) == 0) continue;
      packet.resize(static_cast<size_t>(n));
      return packet;
    }
    return "";
  }
  // With the source address and port that it had.
  void send(std::string packet) {
    auto* udp = reinterpret_cast<udphdr*>(packet.data() + sizeof(iphdr));
    udp->check = 0;  // none; what was recorded before it was filled in would be wrong
    const sockaddr_in to = loopback(0);
    (void)::sendto(raw_, packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                   sizeof to);
  }

 private:
  const std::set<int>& ports_;
  int fd_ = -1;
  int raw_ = -1;
};

TEST_F(PluginStrangers, ReplayedAndSpoofedDatagramsLeaveNothingAndDisturbNobody) {
  Tap tap(udp_);
  if (!tap.works()) GTEST_SKIP() << "raw sockets need root";
  std::vector<std::string> recorded;
  int replayed = 0;
  receive_strangers([&](int i) {
    // Recorded while it warms up: it is our own memory that grows by it.
    if (i < kStrangers / 10 && recorded.size() < 500) {
      if (std::string fresh = tap.next(); !fresh.empty()) recorded.push_back(fresh);
    }
    if (recorded.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    std::string packet = recorded[random_() % recorded.size()];
    const size_t start = sizeof(iphdr) + sizeof(udphdr);
    if (i % 4 == 0 && packet.size() > start + 16) {
      packet[start + 8 + random_() % 8] ^= static_cast<char>(1 << random_() % 8);  // the secret
    } else if (i % 4 == 1 && packet.size() > start + 16) {
      packet[start + random_() % 8] ^= static_cast<char>(1 << random_() % 8);  // the name
    }
    tap.send(packet);
    ++replayed;
  });
  EXPECT_GT(replayed, kStrangers / 2);
}

// Who records a connection and plays it to the next one at the same ports.
TEST_F(PluginStrangers, ConnectionsOfThePastAreStrangersToo) {
  Tap tap(udp_);
  if (!tap.works()) GTEST_SKIP() << "raw sockets need root";
  std::vector<std::string> recorded;
  {
    Pair past(context_, context_);
    Context other;
    Pair elsewhere(other, other);
    ASSERT_TRUE(past.up() && elsewhere.up());
    Traffic traffic(elsewhere);
    eventually([&] {
      if (std::string packet = tap.next(); !packet.empty()) recorded.push_back(packet);
      return recorded.size() >= 500;
    });
  }
  ASSERT_GE(recorded.size(), 500u);
  Context next;
  Pair pair(next, next);
  ASSERT_TRUE(pair.up());
  Traffic traffic(pair);
  for (int round = 0; round < 4; ++round) {
    for (const std::string& packet : recorded) tap.send(packet);
  }
  const int before = traffic.messages();
  EXPECT_TRUE(eventually([&] { return traffic.messages() > before + 100; }));
}

}  // namespace
}  // namespace weft::plugin_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  ::setenv("WEFT_PEER_TIMEOUT_MS", "1000", 1);
  // One datagram each, so that what the tap sees is what was sent.
  ::setenv("WEFT_UDP_GSO", "off", 1);
  ::setenv("WEFT_SEGMENT", "4096", 1);
  return RUN_ALL_TESTS();
}
