// SPDX-License-Identifier: Apache-2.0
//
// A tiny NCCL network plugin over TCP, clear-to-send: what the driver tool is tested against, and
// the base of the plugins that are wrong on purpose.
//
// One TCP connection carries one flow. The receiver sends a Record for each posted receive (a
// grant) and for each message that is in place (an ack); the sender sends a MessageHeader and the
// payload of each message, which it may do only into a grant. A send is done when it is acked.
// Both ends work only while their comm is called (isend, irecv, test), never block, and need no
// thread and no lock: a comm is used by one thread at a time. All queues are of fixed size; full
// means "call again later". Both ends are the same build: bytes go in the machine's order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plugin/nccl/net_v11.h"

namespace weft::faulty {

using nccl::Result;

inline constexpr uint32_t kDepth = 64;  // requests open on a comm
inline constexpr int kParts = nccl::kMaxReceives;

enum class RecordKind : uint32_t { kGrant = 0x47, kAck = 0x41 };

struct Record {  // receiver to sender
  RecordKind kind;
  uint32_t parts;  // of a grant; of an ack: which part
  uint64_t number;
  uint64_t sizes[kParts];
  int32_t tags[kParts];
};

struct MessageHeader {  // sender to receiver, before the payload
  uint32_t magic;
  uint32_t part;
  uint64_t number;
  uint64_t size;
};

struct Comm;

struct Request {
  Comm* comm = nullptr;
  bool open = false;
  bool complete = false;
  uint64_t number = 0;
  int parts = 0;
  int arrived = 0;
  unsigned char* data[kParts] = {};
  uint64_t posted[kParts] = {};
  uint64_t sizes[kParts] = {};  // received, or to be sent
  int tags[kParts] = {};
  // Of a send: its part, and how far it is.
  uint32_t part = 0;
  uint64_t written = 0;   // header included
  bool reported = false;  // faults only: test has said done too early
  bool shifted = false;   // faults only: parts go into the wrong slots
  bool held = false;      // faults only: a send that waits until it was reported done
};

struct Comm {
  enum class Kind { kSend, kRecv } kind;
  int fd = -1;
  bool dead = false;
  std::array<Request, kDepth> requests;
  uint64_t next = 0;  // number of the next receive; or count of sends begun

  // Sender.
  std::array<Record, kDepth> grants;
  std::array<uint32_t, kDepth> taken{};  // parts of each grant that sends have taken
  uint64_t granted = 0, head = 0;        // grants head..granted are known and not used up
  uint64_t first_unwritten = 0;          // sends before it are written
  Record in{};
  size_t in_bytes = 0;

  // Receiver.
  MessageHeader header{};
  size_t header_bytes = 0;
  uint64_t payload_read = 0;
  std::vector<unsigned char> out;  // records not written yet; at most a few per request
};

struct Region {
  Comm* comm;
  unsigned char* from;
  size_t bytes;
};

/// A warning in NCCL's log.
__attribute__((format(printf, 1, 2))) void warn(const char* format, ...);
void set_logger(nccl::Logger logger);

// tcp_connect.cc
Result listen(void* context, int device, void* handle, void** listen_comm);
Result connect(void* context, int device, void* handle, void** send_comm,
               nccl::DeviceHandle** device_handle);
Result accept(void* listen_comm, void** recv_comm, nccl::DeviceHandle** device_handle);
Result close_listen(void* listen_comm);
Result close_comm(void* comm);
void* new_context();
Result free_context(void* context);

// tcp_send.cc, tcp_recv.cc
Result isend(void* send_comm, void* data, size_t size, int tag, void* mhandle, void* profile,
             void** request);
Result irecv(void* recv_comm, int count, void** data, size_t* sizes, int* tags, void** mhandles,
             void** profiles, void** request);
/// Moves what can be moved now.
void progress_send(Comm& comm);
void progress_recv(Comm& comm);
/// What a call on a comm whose peer is gone returns.
enum class Caller { kIsend, kIrecv, kTest };
Result gone(Caller caller);
/// Whether [data, data + size) may be used with `mhandle`.
bool covered(void* mhandle, const void* data, size_t size);

}  // namespace weft::faulty
