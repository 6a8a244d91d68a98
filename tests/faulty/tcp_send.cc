// SPDX-License-Identifier: Apache-2.0
// The sending side of the TCP plugin: grants in, messages out, acks in. See tcp_net.h.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/faulty/fault.h"
#include "tests/faulty/tcp_net.h"

namespace weft::faulty {
namespace {

constexpr uint32_t kMagic = 0x77656674;

void acked(Comm& comm, const Record& ack) {
  for (Request& request : comm.requests) {
    if (!request.open || request.complete || request.number != ack.number ||
        request.part != ack.parts) {
      continue;
    }
    request.complete = true;
    if (request.reported) request.open = false;
    return;
  }
}

void handle(Comm& comm, const Record& record) {
  if (record.kind == RecordKind::kAck) {
    acked(comm, record);
  } else if (record.kind == RecordKind::kGrant && record.number == comm.granted &&
             comm.granted - comm.head < kDepth && record.parts <= kParts) {
    comm.grants[comm.granted % kDepth] = record;
    comm.taken[comm.granted % kDepth] = 0;
    ++comm.granted;
  } else {
    warn("the receiver broke the protocol");
    comm.dead = true;
  }
}

void read_records(Comm& comm) {
  while (!comm.dead) {
    auto* at = reinterpret_cast<unsigned char*>(&comm.in) + comm.in_bytes;
    const ssize_t got = ::recv(comm.fd, at, sizeof comm.in - comm.in_bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      comm.dead = true;
      return;
    }
    comm.in_bytes += static_cast<size_t>(got);
    if (comm.in_bytes < sizeof comm.in) continue;
    comm.in_bytes = 0;
    handle(comm, comm.in);
  }
}

// True when the message is written whole.
bool write_message(Comm& comm, Request& request) {
  const MessageHeader header{kMagic, request.part, request.number, request.sizes[0]};
  const uint64_t total = sizeof header + request.sizes[0];
  while (request.written < total) {
    iovec pieces[2];
    int count = 0;
    if (request.written < sizeof header) {
      pieces[count++] = {
          const_cast<char*>(reinterpret_cast<const char*>(&header)) + request.written,
          sizeof header - request.written};
    }
    const uint64_t body = std::max<uint64_t>(request.written, sizeof header) - sizeof header;
    if (body < request.sizes[0]) {
      pieces[count++] = {request.data[0] + body, request.sizes[0] - body};
    }
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t sent = ::sendmsg(comm.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (sent < 0) {
      comm.dead = true;
      return false;
    }
    request.written += static_cast<uint64_t>(sent);
  }
  return true;
}

// The part of the head grant that a send with this tag takes; -1: none (yet).
int take_part(Comm& comm, int tag) {
  if (comm.head == comm.granted) return -1;
  const Record& grant = comm.grants[comm.head % kDepth];
  uint32_t& taken = comm.taken[comm.head % kDepth];
  for (uint32_t i = 0; i < grant.parts; ++i) {
    if ((taken >> i & 1) == 0 && grant.tags[i] == tag) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

void progress_send(Comm& comm) {
  read_records(comm);
  while (!comm.dead && comm.first_unwritten < comm.next) {
    Request& request = comm.requests[comm.first_unwritten % kDepth];
    if (has(Fault::kLateRead) && request.held) return;
    if (!write_message(comm, request)) return;
    ++comm.first_unwritten;
  }
}

Result isend(void* send_comm, void* data, size_t size, int tag, void* mhandle, void*,
             void** request) {
  auto& comm = *static_cast<Comm*>(send_comm);
  *request = nullptr;
  progress_send(comm);
  if (comm.dead) return gone(Caller::kIsend);
  if (!covered(mhandle, data, size)) return nccl::kInvalidArgument;
  Request& mine = comm.requests[comm.next % kDepth];
  if (mine.open) return nccl::kSuccess;
  const int part = take_part(comm, tag);
  if (part < 0) return nccl::kSuccess;
  const Record& grant = comm.grants[comm.head % kDepth];
  if (size > grant.sizes[part]) {
    warn("a send of %zu bytes into a receive of %llu", size,
         static_cast<unsigned long long>(grant.sizes[part]));
    return nccl::kInvalidUsage;
  }
  count_message();
  if (has(Fault::kCrash) && armed()) *static_cast<volatile int*>(nullptr) = 1;
  mine = Request{};
  mine.comm = &comm;
  mine.open = true;
  mine.number = comm.head;
  mine.parts = 1;
  mine.part = static_cast<uint32_t>(part);
  mine.data[0] = static_cast<unsigned char*>(data);
  mine.sizes[0] = size;
  uint32_t& taken = comm.taken[comm.head % kDepth];
  taken |= 1u << part;
  if (taken == (1u << grant.parts) - 1) ++comm.head;
  ++comm.next;
  if (has(Fault::kDrop) && armed() && size > 0) {
    strike();
    mine.complete = true;
    mine.written = sizeof(MessageHeader) + size;  // so that nothing is written
  }
  if (has(Fault::kLateRead) && armed() && size >= 4096) {
    strike();
    mine.held = true;
  }
  *request = &mine;
  progress_send(comm);
  return nccl::kSuccess;
}

}  // namespace weft::faulty
