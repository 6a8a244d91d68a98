// SPDX-License-Identifier: Apache-2.0
// The receiving side of the TCP plugin: grants out, messages in, acks out. See tcp_net.h.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/faulty/fault.h"
#include "tests/faulty/tcp_net.h"

namespace weft::faulty {
namespace {

constexpr uint32_t kMagic = 0x77656674;
constexpr uint64_t kMaxReadAtOnce = 4 << 20;  // so that a call returns
constexpr uint64_t kStaleBytes = 64;

void write_records(Comm& comm) {
  while (!comm.dead && !comm.out.empty()) {
    const ssize_t sent =
        ::send(comm.fd, comm.out.data(), comm.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) {
      comm.out.clear();  // the sender is gone; what it has sent can still be read
      return;
    }
    comm.out.erase(comm.out.begin(), comm.out.begin() + sent);
  }
}

void add_record(Comm& comm, const Record& record) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&record);
  comm.out.insert(comm.out.end(), bytes, bytes + sizeof record);
}

// A piece of an earlier message, kept to be written over a newer one.
struct Stale {
  unsigned char* at = nullptr;
  unsigned char bytes[kStaleBytes];
};

void repeat_stale(unsigned char* data, uint64_t size) {
  static thread_local Stale stale;
  if (!armed() || size < kStaleBytes) return;
  if (stale.at == nullptr) {
    stale.at = data;
    std::memcpy(stale.bytes, data, kStaleBytes);
  } else if (stale.at == data && std::memcmp(stale.bytes, data, kStaleBytes) != 0) {
    strike();
    std::memcpy(data, stale.bytes, kStaleBytes);
  }
}

// The payload of a message is in place.
void spoil(Request& request, uint32_t part) {
  unsigned char* data = request.data[part];
  const uint64_t size = request.sizes[part];
  if (has(Fault::kCorrupt) && armed() && size > 0) {
    strike();
    data[size / 2] ^= 0x20;
  }
  if (has(Fault::kOverrun) && armed() && size < request.posted[part]) {
    strike();
    data[size] ^= 0xff;
  }
  if (has(Fault::kSize) && armed() && size >= 8) {
    strike();
    request.sizes[part] -= 4;
  }
  if (has(Fault::kStale)) repeat_stale(data, size);
}

// A header has arrived, its payload has not.
void mislead(Comm& comm, Request& request, const MessageHeader& header) {
  Request& later = comm.requests[(header.number + 1) % kDepth];
  if (has(Fault::kReorder) && armed() && header.size > 0 && request.parts == 1 && later.open &&
      !later.complete && later.parts == 1 && later.posted[0] >= header.size &&
      later.number == header.number + 1) {
    strike();
    std::swap(request.data[0], later.data[0]);
    std::swap(request.posted[0], later.posted[0]);
  }
  if (has(Fault::kEarly) && armed() && header.size >= 4096) {
    strike();
    request.sizes[header.part] = header.size;
    request.complete = true;
  }
  if (has(Fault::kSlot) && armed() && request.parts > 1 && request.arrived == 0) {
    strike();
    request.shifted = true;
  }
}

// Where the message of the current header goes; null when the sender broke the protocol.
Request* target(Comm& comm) {
  const MessageHeader& header = comm.header;
  Request& request = comm.requests[header.number % kDepth];
  if (header.magic != kMagic || !request.open || request.number != header.number ||
      header.part >= static_cast<uint32_t>(request.parts) ||
      header.size > request.posted[header.part]) {
    warn("the sender broke the protocol");
    comm.dead = true;
    return nullptr;
  }
  return &request;
}

uint32_t slot_of(const Request& request, uint32_t part) {
  return request.shifted ? (part + 1) % static_cast<uint32_t>(request.parts) : part;
}

void message_arrived(Comm& comm, Request& request) {
  const uint32_t part = slot_of(request, comm.header.part);
  request.sizes[part] = comm.header.size;
  count_message();
  spoil(request, part);
  if (++request.arrived == request.parts) request.complete = true;
  Record ack{};
  ack.kind = RecordKind::kAck;
  ack.parts = comm.header.part;
  ack.number = comm.header.number;
  add_record(comm, ack);
  comm.header_bytes = 0;
  comm.payload_read = 0;
}

// Reads into [at, at + bytes). How much came; 0: nothing now.
size_t read_some(Comm& comm, void* at, size_t bytes) {
  const ssize_t got = ::recv(comm.fd, at, bytes, MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) comm.dead = true;
  return 0;
}

}  // namespace

void progress_recv(Comm& comm) {
  write_records(comm);
  uint64_t budget = kMaxReadAtOnce;
  while (!comm.dead && budget > 0) {
    if (comm.header_bytes < sizeof comm.header) {
      auto* at = reinterpret_cast<unsigned char*>(&comm.header) + comm.header_bytes;
      const size_t got = read_some(comm, at, sizeof comm.header - comm.header_bytes);
      if (got == 0) break;
      comm.header_bytes += got;
      if (comm.header_bytes < sizeof comm.header) continue;
      Request* request = target(comm);
      if (request == nullptr) break;
      mislead(comm, *request, comm.header);
    }
    Request* request = target(comm);
    if (request == nullptr) break;
    if (has(Fault::kEarly) && request->complete && !request->reported) break;
    const uint64_t left = comm.header.size - comm.payload_read;
    if (left > 0) {
      const size_t got =
          read_some(comm, request->data[slot_of(*request, comm.header.part)] + comm.payload_read,
                    std::min(left, budget));
      if (got == 0) break;
      comm.payload_read += got;
      budget -= got;
    }
    if (comm.payload_read == comm.header.size) message_arrived(comm, *request);
  }
  write_records(comm);
}

Result irecv(void* recv_comm, int count, void** data, size_t* sizes, int* tags, void** mhandles,
             void**, void** request) {
  auto& comm = *static_cast<Comm*>(recv_comm);
  *request = nullptr;
  if (count < 1 || count > kParts) return nccl::kInvalidArgument;
  if (comm.dead) return gone(Caller::kIrecv);
  Request& mine = comm.requests[comm.next % kDepth];
  if (mine.open) return nccl::kSuccess;
  mine = Request{};
  mine.comm = &comm;
  mine.open = true;
  mine.number = comm.next;
  mine.parts = count;
  Record grant{};
  grant.kind = RecordKind::kGrant;
  grant.parts = static_cast<uint32_t>(count);
  grant.number = comm.next;
  for (int i = 0; i < count; ++i) {
    if (!covered(mhandles[i], data[i], sizes[i])) {
      mine.open = false;
      return nccl::kInvalidArgument;
    }
    mine.data[i] = static_cast<unsigned char*>(data[i]);
    mine.posted[i] = grant.sizes[i] = sizes[i];
    mine.tags[i] = grant.tags[i] = tags[i];
  }
  ++comm.next;
  add_record(comm, grant);
  write_records(comm);
  *request = &mine;
  return nccl::kSuccess;
}

}  // namespace weft::faulty
