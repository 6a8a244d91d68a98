// SPDX-License-Identifier: Apache-2.0
// A listening end by hand, which does not answer, forgets, or turns away: what the connecting end
// says then, and how often.
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/unit/endpoint/support.h"
#include "transport/memory.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"
#include "transport/wire/handshake.h"

namespace weft::test {
namespace {

using wire::FrameType;

struct Said {
  FrameType type{};  // 0: nothing more came
  std::vector<std::byte> body;
};

class HardOfHearing : public ::testing::Test {
 protected:
  void SetUp() override {
    UdpConfig udp;
    udp.address = IpAddress::v4(127, 0, 0, 1);
    udp.sockets = 1;
    udp.mtu = 65536;
    auto fabric = open_udp(udp, memory_);
    ASSERT_TRUE(fabric.ok()) << fabric.status().words();
    fabric_ = std::move(*fabric);
    ASSERT_TRUE(fabric_->create_link(&link_).ok());
    socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    SocketAddress at(udp.address, 0);
    ASSERT_EQ(::bind(socket_.get(), at.get(), at.size()), 0);
    ASSERT_EQ(::listen(socket_.get(), 64), 0);
    ASSERT_EQ(::getsockname(socket_.get(), at.out(), at.length()), 0);
    limit(socket_);
    wire::ListenHandle handle;
    handle.address = udp.address;
    handle.port = at.port();
    handle.incarnation = 5;
    handle.context = 6;
    handle.cookie.fill(std::byte{7});
    handle_.fill(std::byte{0});
    wire::encode_handle(std::span(handle_).first<wire::kHandleBytes>(), handle);
    a_ = open_endpoint();
    connector_ = *a_->start_connect(1, 0, handle_);
  }

  static void limit(const FileDescriptor& fd) {
    const timeval limit{20, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  FileDescriptor accept() {
    FileDescriptor out(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(out) << "nobody dialed";
    limit(out);
    return out;
  }
  static std::vector<std::byte> exactly(const FileDescriptor& fd, size_t bytes) {
    std::vector<std::byte> out(bytes);
    if (bytes > 0 && ::recv(fd.get(), out.data(), bytes, MSG_WAITALL) != ssize_t(bytes))
      out.clear();
    return out;
  }
  static Said hear(const FileDescriptor& fd) {
    const auto head = exactly(fd, wire::kFrameHeaderBytes);
    wire::FrameHeader header;
    if (head.empty() || !wire::decode_frame_header(head, &header)) return {};
    return {static_cast<FrameType>(header.type), exactly(fd, header.body_bytes)};
  }
  static void say(const FileDescriptor& fd, const std::vector<std::byte>& bytes) {
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  void welcome(const FileDescriptor& fd) {
    const Said hello = hear(fd);
    ASSERT_EQ(hello.type, FrameType::kHello);
    wire::Introduction self;
    self.incarnation = 5;
    self.context = 6;
    self.address = {3, 4};
    self.segment_bytes = 1408;
    self.paths = 1;
    self.offloads = fabric_->offloads();
    self.fabric = fabric_->name();
    self.link_address = link_;
    std::vector<std::byte> frame;
    wire::append_welcome(&frame, self);
    say(fd, frame);
  }
  uint32_t request_of(const Said& said) {
    wire::Open open;
    EXPECT_EQ(said.type, FrameType::kOpen);
    EXPECT_TRUE(wire::decode_open(said.body, &open));
    return open.request;
  }
  bool done() {
    SendFlow* flow = nullptr;
    EXPECT_TRUE(poll_until([&] {
      const Status status = a_->connect(connector_, &flow);
      EXPECT_TRUE(status.ok()) << status.words();
      return !status.ok() || flow;
    }));
    return flow != nullptr;
  }
  static std::vector<std::byte> opened(uint32_t request) {
    std::vector<std::byte> frame;
    wire::append_opened(&frame, {request, 0});
    return frame;
  }

  HostMemory memory_;
  std::unique_ptr<Fabric> fabric_;
  LinkAddress link_;
  FileDescriptor socket_;
  Handle handle_;
  std::unique_ptr<Endpoint> a_;
  Connector* connector_ = nullptr;
};

TEST_F(HardOfHearing, AHelloWithoutAnAnswerIsSaidAgainOnAnotherStream) {
  const FileDescriptor deaf = accept();
  EXPECT_EQ(hear(deaf).type, FrameType::kHello);
  EXPECT_EQ(hear(deaf).type, FrameType{}) << "given up without a word";
  const FileDescriptor second = accept();
  ASSERT_NO_FATAL_FAILURE(welcome(second));
  say(second, opened(request_of(hear(second))));
  EXPECT_TRUE(done());
}

TEST_F(HardOfHearing, WhileARequestWaitsItIsAskedAgainUnderItsNumber) {
  const FileDescriptor stream = accept();
  ASSERT_NO_FATAL_FAILURE(welcome(stream));
  const uint32_t request = request_of(hear(stream));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(request_of(hear(stream)), request);
  for (int i = 0; i < 3; ++i) say(stream, opened(request));
  EXPECT_TRUE(done()) << "three answers are as good as one";
}

TEST_F(HardOfHearing, AStreamThatBreaksIsResumedUnderThePeersNameAndAsksAgain) {
  FileDescriptor stream = accept();
  ASSERT_NO_FATAL_FAILURE(welcome(stream));
  const uint32_t request = request_of(hear(stream));
  stream.reset();
  const FileDescriptor second = accept();
  const Said resume = hear(second);
  ASSERT_EQ(resume.type, FrameType::kResume);
  wire::Address named;
  ASSERT_TRUE(wire::decode_resume(resume.body, &named));
  EXPECT_EQ(named, (wire::Address{3, 4}));
  std::vector<std::byte> frame;
  wire::append_resumed(&frame);
  say(second, frame);
  EXPECT_EQ(request_of(hear(second)), request);
  say(second, opened(request));
  EXPECT_TRUE(done());
}

TEST_F(HardOfHearing, AResumptionWithoutAnAnswerIsTriedOnAnotherStream) {
  FileDescriptor stream = accept();
  ASSERT_NO_FATAL_FAILURE(welcome(stream));
  const uint32_t request = request_of(hear(stream));
  stream.reset();
  const FileDescriptor deaf = accept();
  EXPECT_EQ(hear(deaf).type, FrameType::kResume);
  EXPECT_EQ(hear(deaf).type, FrameType{});
  const FileDescriptor third = accept();
  EXPECT_EQ(hear(third).type, FrameType::kResume);
  std::vector<std::byte> frame;
  wire::append_resumed(&frame);
  say(third, frame);
  say(third, opened(request));
  EXPECT_TRUE(done());
}

TEST_F(HardOfHearing, APeerThatKnowsTheConnectionNoMoreIsGreetedAnew) {
  FileDescriptor stream = accept();
  ASSERT_NO_FATAL_FAILURE(welcome(stream));
  (void)request_of(hear(stream));
  stream.reset();
  int turned_away = 0;
  for (;; ++turned_away) {
    ASSERT_LT(turned_away, 10);
    stream = accept();
    // What is there to hear is a resumption, until it is a hello.
    std::byte head[wire::kFrameHeaderBytes];
    ASSERT_EQ(::recv(stream.get(), head, sizeof head, MSG_PEEK | MSG_WAITALL),
              ssize_t(sizeof head));
    wire::FrameHeader header;
    ASSERT_TRUE(wire::decode_frame_header(head, &header));
    if (header.type == static_cast<uint8_t>(FrameType::kHello)) break;
    EXPECT_EQ(header.type, static_cast<uint8_t>(FrameType::kResume));
    (void)hear(stream);
    stream.reset();
  }
  EXPECT_GE(turned_away, 2) << "one may have been overrun by strangers";
  ASSERT_NO_FATAL_FAILURE(welcome(stream));
  say(stream, opened(request_of(hear(stream))));
  EXPECT_TRUE(done());
}

}  // namespace
}  // namespace weft::test
