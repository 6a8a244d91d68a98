// SPDX-License-Identifier: Apache-2.0
// Sockets, buffers and frames of one out-of-band stream.
#include "multipath/endpoint/oob_stream.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft {
namespace {

constexpr size_t kReadBytes = 16 << 10;
constexpr int kMaxDrains = 64;          // reads of 16 KB before a stream is shut over what is left
constexpr int kSendBuffer = 128 << 10;  // room in the kernel for a last word that nobody waits for

Status system_status(const std::string& what, int error) {
  return {Code::kSystem, what + ": " + strerror(error)};
}

void set_option(int fd, int level, int name, int value) {
  // A kernel that refuses one of these still carries the stream.
  (void)setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

Result<std::unique_ptr<OobStream>> OobStream::dial(const IpAddress& local, IpAddress remote,
                                                   uint16_t port, Duration patience) {
  if (remote.ipv6 != local.ipv6) {
    return Status(Code::kRemote, "the peer listens on " + remote.text(port) + ", this end has " +
                                     local.text() +
                                     ": choose IPv4 or IPv6 alike on both (WEFT_FAMILY)");
  }
  // A neighbour is where we are: on the link of our own address.
  if (remote.link_local()) remote.scope = local.scope;
  const std::string name = remote.text(port);
  FileDescriptor socket(::socket(family_of(remote), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return system_status("no TCP socket to reach " + name, errno);
  std::unique_ptr<OobStream> stream(new OobStream(std::move(socket), name));
  stream->set_options(patience);
  const SocketAddress from(local, 0);
  if (::bind(stream->descriptor(), from.get(), from.size()) != 0) {
    return system_status("cannot bind a TCP socket to " + local.text(), errno);
  }
  const SocketAddress to(remote, port);
  stream->connecting_ = true;
  if (::connect(stream->descriptor(), to.get(), to.size()) == 0) {
    stream->connecting_ = false;
  } else if (errno != EINPROGRESS) {
    return Status(Code::kRemote, "cannot connect to " + name + ": " + strerror(errno));
  }
  return stream;
}

std::unique_ptr<OobStream> OobStream::adopt(FileDescriptor socket, const SocketAddress& remote,
                                            Duration patience) {
  std::unique_ptr<OobStream> stream(
      new OobStream(std::move(socket), remote.address().text(remote.port())));
  stream->set_options(patience);
  return stream;
}

void OobStream::set_options(Duration patience) {
  const int fd = descriptor();
  const int64_t ms = std::max<int64_t>(patience.ns / 1000000, 100);
  const auto whole_seconds = static_cast<int>(std::max<int64_t>(ms / 1000, 1));
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_SNDBUF, kSendBuffer);
  // A host that vanishes without a word is noticed here too; as a hint, like every end of a stream.
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, whole_seconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, whole_seconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::min<int64_t>(ms, 1 << 30)));
}

bool OobStream::send(std::span<const std::byte> frames) {
  if (output_.size() - sent_ + frames.size() > kMaxOutput) return false;
  if (sent_ == output_.size()) output_.clear(), sent_ = 0;
  output_.insert(output_.end(), frames.begin(), frames.end());
  if (!connecting_) flush();
  return true;
}

void OobStream::finish_connecting() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    refused_ = error == ECONNREFUSED;
    end_ = {Code::kRemote, "cannot connect to " + remote_ + ": " + strerror(error)};
    return;
  }
  SocketAddress remote;
  if (getpeername(descriptor(), remote.out(), remote.length()) != 0) return;  // not yet
  connecting_ = false;
}

void OobStream::flush() {
  if (connecting_) finish_connecting();
  while (!connecting_ && !ended() && sent_ < output_.size()) {
    const ssize_t n =
        ::send(descriptor(), output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
    if (n > 0) {
      sent_ += static_cast<size_t>(n);
      written_ += static_cast<uint64_t>(n);
    } else if (errno != EINTR) {
      // A broken stream shows itself to the next read, after what the peer said before it broke.
      if (errno != EAGAIN && errno != EWOULDBLOCK) output_.clear(), sent_ = 0;
      break;
    }
  }
  if (sent_ == output_.size()) output_.clear(), sent_ = 0;
}

bool OobStream::fill() {
  if (connecting_ || ended()) return false;
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(read_));
  read_ = 0;
  const size_t had = input_.size();
  input_.resize(had + kReadBytes);
  ssize_t n;
  do {
    n = ::recv(descriptor(), input_.data() + had, kReadBytes, 0);
  } while (n < 0 && errno == EINTR);
  const int error = errno;
  input_.resize(had + static_cast<size_t>(std::max<ssize_t>(n, 0)));
  spoke_ = spoke_ || n > 0;
  if (n == 0) {
    end_ = {Code::kRemote, "the stream to " + remote_ + " was closed by the other end"};
  } else if (n < 0 && error != EAGAIN && error != EWOULDBLOCK) {
    end_ = {Code::kRemote, "the stream to " + remote_ + " broke: " + strerror(error)};
  }
  return n == static_cast<ssize_t>(kReadBytes);
}

bool OobStream::next_frame(Frame* frame) {
  if (closed) return false;
  const auto left = std::span<const std::byte>(input_).subspan(read_);
  if (left.size() < wire::kFrameHeaderBytes) return false;
  wire::FrameHeader header;
  if (!wire::decode_frame_header(left, &header)) {
    end_ = {Code::kRemote, "what " + remote_ + " sends is not the language of this program"};
    read_ = input_.size();
    return false;
  }
  const size_t whole = wire::kFrameHeaderBytes + header.body_bytes;
  if (left.size() < whole) return false;
  *frame = {header.version, header.type, left.subspan(wire::kFrameHeaderBytes, header.body_bytes)};
  read_ += whole;
  return true;
}

uint64_t OobStream::acknowledged() const {
  int queued = 0;
  if (ioctl(descriptor(), SIOCOUTQ, &queued) != 0 || queued < 0) return written_;
  return written_ - std::min(written_, static_cast<uint64_t>(queued));
}

void OobStream::forget_output() {
  output_.clear();
  sent_ = 0;
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void OobStream::shut() {
  std::array<std::byte, kReadBytes> waste;
  for (int i = 0; i < kMaxDrains; ++i) {
    if (::recv(descriptor(), waste.data(), waste.size(), MSG_DONTWAIT) <= 0) break;
  }
  flush();
  // Reaches the peer even if a forked child holds the socket open.
  (void)::shutdown(descriptor(), SHUT_RDWR);
  socket_.reset();
}

}  // namespace weft
