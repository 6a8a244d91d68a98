// SPDX-License-Identifier: Apache-2.0
// The epoll loop over the out-of-band sockets, and the bounds on strangers.
#include "multipath/endpoint/out_of_band.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transport/system/log.h"

namespace weft {
namespace {

constexpr uint64_t kListenerId = 0;
constexpr uint64_t kGuestId = UINT64_MAX;
constexpr int kBatch = 64;
constexpr int kMaxBatches = 8;                  // of events in one serve()
constexpr int kMaxAccepts = 64;                 // in a row
constexpr int kMaxFills = 16;                   // reads from one stream in a row
constexpr Duration kPause = milliseconds(100);  // of the listener when descriptors have run out

}  // namespace

Status OutOfBand::open(const IpAddress& address, Duration patience, Duration stranger_patience,
                       Handler* handler) {
  address_ = address;
  patience_ = patience;
  stranger_patience_ = stranger_patience;
  handler_ = handler;
  const auto failed = [&](const char* what) {
    return Status(Code::kSystem,
                  std::string(what) + " on " + address.text() + ": " + strerror(errno));
  };
  listener_.reset(::socket(family_of(address), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener_) return failed("no TCP socket to listen");
  SocketAddress at(address, 0);
  if (::bind(listener_.get(), at.get(), at.size()) != 0) {
    return failed("cannot bind a TCP socket");
  }
  if (::listen(listener_.get(), SOMAXCONN) != 0) return failed("cannot listen");
  if (getsockname(listener_.get(), at.out(), at.length()) != 0) {
    return failed("cannot learn which TCP port it is");
  }
  port_ = at.port();
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return failed("no epoll");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kListenerId}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0)
    return failed("no epoll");
  return {};
}

void OutOfBand::watch_guest(int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kGuestId}};
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
}

Result<OobStream*> OutOfBand::dial(const IpAddress& remote, uint16_t port) {
  Result<std::unique_ptr<OobStream>> stream = OobStream::dial(address_, remote, port, patience_);
  if (!stream.ok()) return stream.status();
  (*stream)->known = true;
  return add(std::move(*stream));
}

OobStream* OutOfBand::add(std::unique_ptr<OobStream> stream) {
  OobStream* plain = stream.get();
  plain->id = ++last_id_;
  streams_.emplace(plain->id, std::move(stream));
  watch(*plain);
  return plain;
}

void OutOfBand::watch(OobStream& stream) {
  const uint32_t events = EPOLLIN | (stream.wants_write() ? EPOLLOUT : 0u);
  if (stream.closed || stream.events == events) return;
  epoll_event event{.events = events, .data = {.u64 = stream.id}};
  const int how = stream.events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (epoll_ctl(epoll_.get(), how, stream.descriptor(), &event) == 0) stream.events = events;
}

void OutOfBand::send(OobStream& stream, std::span<const std::byte> frames) {
  if (stream.closed) return;
  if (!stream.send(frames)) {
    WEFT_WARN_LIMITED("peer {} does not read what is said out of band; its stream is given up",
                      stream.remote());
    (void)::shutdown(stream.descriptor(), SHUT_RDWR);  // its end is then seen like any other
  }
  watch(stream);
}

void OutOfBand::mark_known(OobStream& stream) {
  stream.known = true;
  std::erase(strangers_, &stream);
}

void OutOfBand::close(OobStream& stream, std::span<const std::byte> last_frames) {
  if (stream.closed) return;
  if (!last_frames.empty()) (void)stream.send(last_frames);
  // By hand: a forked child that holds the socket would keep it in the set.
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream.descriptor(), nullptr);
  stream.shut();
  stream.closed = true;
  stream.peer = nullptr;
  std::erase(strangers_, &stream);
  const auto found = streams_.find(stream.id);
  if (found == streams_.end()) return;
  graveyard_.push_back(std::move(found->second));
  streams_.erase(found);
}

void OutOfBand::serve(Time now) {
  graveyard_.clear();
  std::array<epoll_event, kBatch> events;
  for (int batch = 0; batch < kMaxBatches; ++batch) {
    const int count = epoll_wait(epoll_.get(), events.data(), kBatch, 0);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      // a copy: epoll_event is packed, so nothing may refer into it
      const uint64_t id = event.data.u64;
      if (id == kListenerId) {
        accept_some(now);
        continue;
      }
      if (id == kGuestId) {
        handler_->on_guest(now);
        continue;
      }
      const auto found = streams_.find(id);
      if (found != streams_.end()) pump(*found->second, event.events, now);
    }
    if (count <= 0) break;
  }
  expire(now);
}

void OutOfBand::pump(OobStream& stream, uint32_t events, Time now) {
  const bool was_connecting = stream.connecting();
  if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) stream.flush();
  if (was_connecting && !stream.connecting()) handler_->on_connected(stream, now);
  Frame frame;
  bool more = true;
  for (int i = 0; i < kMaxFills && more && !stream.closed; ++i) {
    more = stream.fill();
    while (stream.next_frame(&frame)) handler_->on_frame(stream, frame, now);
  }
  if (stream.closed) return;
  if (stream.ended()) {
    // Who goes without a word has dialed from several ports, and won by another.
    if (!stream.known && stream.spoke()) ++intruders_;
    handler_->on_end(stream, now);
    close(stream);
    return;
  }
  watch(stream);
}

void OutOfBand::accept_some(Time now) {
  for (int i = 0; i < kMaxAccepts; ++i) {
    SocketAddress remote;
    FileDescriptor socket(
        ::accept4(listener_.get(), remote.out(), remote.length(), SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      WEFT_WARN_LIMITED("cannot accept a TCP stream on {}: {}", address_.text(port_),
                        strerror(errno));
      pause_listener(now);
      return;
    }
    if (strangers_.size() >= kMaxStrangers) drop(*strangers_.front());
    OobStream* stream = add(OobStream::adopt(std::move(socket), remote, patience_));
    stream->deadline = now + stranger_patience_;
    strangers_.push_back(stream);
    pump(*stream, 0, now);  // a hello is often here already
  }
}

void OutOfBand::pause_listener(Time now) {
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  resume_at_ = now + kPause;
}

void OutOfBand::expire(Time now) {
  while (!strangers_.empty() && strangers_.front()->deadline <= now) drop(*strangers_.front());
  if (resume_at_ > now) return;
  resume_at_ = Time::never();
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kListenerId}};
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event);
}

Time OutOfBand::deadline() const {
  return strangers_.empty() ? resume_at_ : earlier(resume_at_, strangers_.front()->deadline);
}

}  // namespace weft
