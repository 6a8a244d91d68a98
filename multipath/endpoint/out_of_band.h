// SPDX-License-Identifier: Apache-2.0
// The out-of-band side of an endpoint: one TCP socket that listens, the streams, and one epoll over
// all.
//
// Streams that came from outside are strangers until the handler marks them known: at most
// kMaxStrangers of them wait, each until a deadline, the oldest giving way to a new one. So port
// scanners, garbage and slow or half-open connections cost a bounded number of descriptors and
// bytes and disturb nobody.
//
// Threading: everything under the endpoint's set-up mutex, but descriptor(), which anybody may
// poll. Ownership: owns its streams; a closed one is destroyed with the next serve(), so that a
// handler may close any stream at any time. What may fail: open(); dial(), in words. Out of
// descriptors: the listener pauses.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "multipath/endpoint/oob_stream.h"
#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/system/file_descriptor.h"

namespace weft {

class OutOfBand {
 public:
  static constexpr size_t kMaxStrangers = 256;

  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_frame(OobStream& stream, const Frame& frame, Time now) = 0;
    // The stream is over, all its frames delivered; it is closed on return.
    virtual void on_end(OobStream& stream, Time now) = 0;
    // A stream that we dialed is there.
    virtual void on_connected(OobStream& stream, Time now) = 0;
    // The guest's descriptor is readable.
    virtual void on_guest(Time now) = 0;
  };

  // `stranger_patience`: how long a stranger may take to present a cookie.
  Status open(const IpAddress& address, Duration patience, Duration stranger_patience,
              Handler* handler);

  // One more descriptor, of somebody else's, to be watched along.
  void watch_guest(int descriptor);

  uint16_t port() const { return port_; }
  int descriptor() const { return epoll_.get(); }
  size_t streams() const { return streams_.size(); }
  uint64_t intruders() const { return intruders_; }

  Result<OobStream*> dial(const IpAddress& remote, uint16_t port);
  // Sends whole frames, now or when the peer reads. A peer that never reads loses its stream.
  void send(OobStream& stream, std::span<const std::byte> frames);
  void mark_known(OobStream& stream);
  // The last frames, as far as they go without waiting; then the end.
  void close(OobStream& stream, std::span<const std::byte> last_frames = {});
  // At once, and what was sent and has not arrived never will.
  void abandon(OobStream& stream) {
    stream.forget_output();
    close(stream);
  }
  // A stranger that does not belong here.
  void drop(OobStream& stream) {
    ++intruders_;
    close(stream);
  }

  // Handles everything that is ready, a bounded amount at a time.
  void serve(Time now);
  // When serve() has something to do without input.
  Time deadline() const;

 private:
  void accept_some(Time now);
  void pump(OobStream& stream, uint32_t events, Time now);
  OobStream* add(std::unique_ptr<OobStream> stream);
  void watch(OobStream& stream);
  void pause_listener(Time now);
  void expire(Time now);

  IpAddress address_;
  uint16_t port_ = 0;
  Duration patience_{};
  Duration stranger_patience_{};
  Handler* handler_ = nullptr;
  FileDescriptor listener_;
  FileDescriptor epoll_;
  Time resume_at_ = Time::never();  // the listener pauses until then
  uint64_t last_id_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<OobStream>> streams_;
  std::vector<OobStream*> strangers_;  // oldest first
  std::vector<std::unique_ptr<OobStream>> graveyard_;
  uint64_t intruders_ = 0;
};

}  // namespace weft
