// SPDX-License-Identifier: Apache-2.0
// One non-blocking TCP stream of frames to or from a peer, or a stranger.
//
// Invariant: what is buffered is bounded both ways (a frame and one read of input; kMaxOutput of
// output), whatever the other end sends or does not read. A stream that has ended stays readable as
// an object: frames that came before the end are delivered first.
//
// Threading: under the endpoint's set-up mutex. Ownership: OutOfBand owns streams. What may fail:
// the peer; then end() says what was seen.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/socket_address.h"
#include "transport/wire/handshake.h"

namespace weft {

struct Peer;

struct Frame {
  uint8_t version = 0;
  uint8_t type = 0;
  std::span<const std::byte> body;
};

class OobStream {
 public:
  static constexpr size_t kMaxOutput = 256 << 10;

  // Begins to connect from `local`. `patience`: silence of unacknowledged bytes after which TCP
  // gives up.
  static Result<std::unique_ptr<OobStream>> dial(const IpAddress& local, IpAddress remote,
                                                 uint16_t port, Duration patience);
  // A stream that was accepted.
  static std::unique_ptr<OobStream> adopt(FileDescriptor socket, const SocketAddress& remote,
                                          Duration patience);

  int descriptor() const { return socket_.get(); }
  const std::string& remote() const { return remote_; }
  bool connecting() const { return connecting_; }
  bool wants_write() const { return connecting_ || sent_ < output_.size(); }
  bool ended() const { return !end_.ok(); }
  const Status& end() const { return end_; }
  // The other end's kernel knows of nobody who listens there.
  bool refused() const { return refused_; }
  // Anything has come from the other end.
  bool spoke() const { return spoke_; }
  // Bytes given to TCP so far, and those of them that the other end's kernel has.
  uint64_t written() const { return written_; }
  uint64_t acknowledged() const;

  // Queues whole frames and sends what goes. False: the peer does not read, and the bound is
  // reached.
  bool send(std::span<const std::byte> frames);
  // The socket is writable: goes on connecting or sending.
  void flush();
  // Takes input; returns whether there may be more.
  bool fill();
  // The next whole frame, valid until fill(). Bytes that are no frame end the stream.
  bool next_frame(Frame* frame);
  // Throws input away, so that closing does not answer it with a reset; then no more is said or
  // heard.
  void shut();
  // From now on shut() forgets what has not arrived, so that it never will.
  void forget_output();

  // OutOfBand's and its handler's.
  uint64_t id = 0;
  uint32_t events = 0;  // that epoll watches
  bool known = false;   // has presented a cookie, or was dialed by us
  bool closed = false;
  Time deadline = Time::never();  // of a stranger
  Peer* peer = nullptr;

 private:
  OobStream(FileDescriptor socket, std::string remote)
      : socket_(std::move(socket)), remote_(std::move(remote)) {}
  void set_options(Duration patience);
  void finish_connecting();

  FileDescriptor socket_;
  std::string remote_;
  bool connecting_ = false;
  Status end_;
  bool refused_ = false;
  bool spoke_ = false;
  uint64_t written_ = 0;
  std::vector<std::byte> input_;
  size_t read_ = 0;  // of input_, consumed
  std::vector<std::byte> output_;
  size_t sent_ = 0;  // of output_
};

}  // namespace weft
