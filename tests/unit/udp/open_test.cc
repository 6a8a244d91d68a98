// SPDX-License-Identifier: Apache-2.0
// Opening a UDP fabric: what it chooses, and what it says when it cannot.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <set>

#include "transport/udp/udp.h"
#include "transport/udp/udp_address.h"

namespace weft {
namespace {

UdpConfig loopback() {
  UdpConfig config;
  config.address = IpAddress::v4(127, 0, 0, 1);
  config.sockets = 4;
  return config;
}

size_t open_descriptors() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += !entry.path().empty();
  return count;
}

Status refusal(const UdpConfig& config) {
  HostMemory memory;
  const auto fabric = open_udp(config, memory);
  EXPECT_FALSE(fabric);
  EXPECT_FALSE(fabric.status().words().empty());
  return fabric.status();
}

TEST(UdpSegment, IsTheLargestThatFitsInWholeLines) {
  EXPECT_EQ(segment_for_mtu(1500, false), 1408u);
  EXPECT_EQ(segment_for_mtu(1500, true), 1280u);
  EXPECT_EQ(segment_for_mtu(1280, true), 1152u);
  EXPECT_EQ(segment_for_mtu(9000, false), 8832u);
  EXPECT_EQ(segment_for_mtu(65536, false), kMaxUdpSegment);
  for (const bool ipv6 : {false, true}) {
    for (uint32_t mtu = min_udp_mtu(ipv6); mtu <= 65536; ++mtu) {
      const uint32_t segment = segment_for_mtu(mtu, ipv6);
      ASSERT_EQ(segment % kLineBytes, 0u) << mtu;
      ASSERT_GT(segment, 0u) << mtu;
      ASSERT_LE(segment + kMaxSegmentHeader + udp_overhead(ipv6), mtu);
      const bool next_fits = segment + kLineBytes + kMaxSegmentHeader + udp_overhead(ipv6) <= mtu;
      ASSERT_TRUE(!next_fits || segment == kMaxUdpSegment) << mtu;
    }
  }
}

TEST(UdpOpen, GivesEachSocketAPortOfItsOwn) {
  HostMemory memory;
  UdpConfig config = loopback();
  config.sockets = 64;
  const auto fabric = open_udp(config, memory);
  ASSERT_TRUE(fabric) << fabric.status().words();
  LinkAddress address;
  ASSERT_TRUE((*fabric)->create_link(&address));
  const auto decoded = udp::decode_address(address);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(std::set<uint16_t>(decoded->ports.begin(), decoded->ports.end()).size(), 64u);
}

TEST(UdpOpen, ReportsWhatTheKernelGranted) {
  HostMemory memory;
  const auto fabric = open_udp(loopback(), memory);
  ASSERT_TRUE(fabric);
  EXPECT_GT(udp_counters(**fabric).receive_buffer_bytes, 0u);
  EXPECT_EQ((*fabric)->max_segment_bytes(), 1408u);  // the MTU was not given
}

TEST(UdpOpen, RefusesSettingsWithoutSense) {
  UdpConfig config = loopback();
  config.sockets = 0;
  EXPECT_EQ(refusal(config).code(), Code::kInvalidArgument);
  config.sockets = kMaxPaths + 1;
  EXPECT_EQ(refusal(config).code(), Code::kInvalidArgument);
  config = loopback();
  config.mtu = min_udp_mtu(false) - 1;
  EXPECT_NE(refusal(config).words().find("MTU of 1243"), std::string::npos);
  config = loopback();
  config.segment_bytes_override = 1000;  // not whole lines
  EXPECT_EQ(refusal(config).code(), Code::kInvalidArgument);
  config.segment_bytes_override = 1536;  // does not fit 1500
  EXPECT_EQ(refusal(config).code(), Code::kInvalidArgument);
  config = loopback();
  config.address = IpAddress::v4(0, 0, 0, 0);
  EXPECT_EQ(refusal(config).code(), Code::kInvalidArgument);
}

TEST(UdpOpen, SaysThatAnAddressIsNotOurs) {
  UdpConfig config = loopback();
  config.address = IpAddress::v4(192, 0, 2, 1);  // kept for documentation: nobody's
  const Status status = refusal(config);
  EXPECT_EQ(status.code(), Code::kSystem);
  EXPECT_NE(status.words().find("192.0.2.1"), std::string::npos) << status.words();
}

TEST(UdpOpen, RunningOutOfDescriptorsIsAnErrorAndLeaksNone) {
  const size_t before = open_descriptors();
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit tight = old;
  tight.rlim_cur = before + 8;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  UdpConfig config = loopback();
  config.sockets = 64;
  const Status status = refusal(config);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(status.code(), Code::kSystem);
  EXPECT_NE(status.words().find("ulimit"), std::string::npos) << status.words();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(UdpOpen, ClosesWhatItOpened) {
  const size_t before = open_descriptors();
  {
    HostMemory memory;
    const auto fabric = open_udp(loopback(), memory);
    ASSERT_TRUE(fabric);
    EXPECT_EQ(open_descriptors(), before + 6);  // four sockets, the epoll descriptor, an eventfd
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace weft
