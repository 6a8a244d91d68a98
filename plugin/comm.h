// SPDX-License-Identifier: Apache-2.0
// What NCCL's opaque pointers point to: contexts and comms. An mhandle is a weft::Registration, a
// request a weft::Request whose `user` is the comm it belongs to (null once it is over).
//
// Threading: a Context's table is under its mutex, for set-up calls only; a Comm's fields do not
// change after it was handed out, but for the error, which is sticky and atomic, since registration
// and data calls come from two threads. Ownership: the context owns its comms; flows belong to the
// endpoint.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "multipath/endpoint/endpoint.h"
#include "plugin/net.h"

namespace weft::plugin {

class Context;

struct Comm {
  // Odd numbers, so that a pointer to something else is seldom taken for a comm.
  enum class Kind : uint32_t { kListen = 0x7ef71157, kSend = 0x7ef75e4d, kReceive = 0x7ef74ecf };

  Kind kind = Kind::kListen;
  Context* context = nullptr;
  Endpoint* endpoint = nullptr;
  Listener* listener = nullptr;  // exactly one of the three is set
  SendFlow* send = nullptr;
  ReceiveFlow* receive = nullptr;
  std::atomic<nccl::Result> error{
      nccl::kSuccess};  // what every call returns once the flow has failed

  Flow* flow() const {
    return kind == Kind::kSend ? static_cast<Flow*>(send) : static_cast<Flow*>(receive);
  }
};

// Null when the pointer is null or names another kind of comm.
inline Comm* comm_of(void* pointer, Comm::Kind kind) {
  Comm* comm = static_cast<Comm*>(pointer);
  return comm != nullptr && comm->kind == kind ? comm : nullptr;
}
inline Comm* flow_comm_of(void* pointer) {
  Comm* comm = comm_of(pointer, Comm::Kind::kSend);
  return comm != nullptr ? comm : comm_of(pointer, Comm::Kind::kReceive);
}

// A connect that has begun. The handle of later calls names it by a ticket: no pointer of ours ever
// stands in bytes that may come from outside.
struct PendingConnect {
  Connector* connector = nullptr;
  Endpoint* endpoint = nullptr;
  Handle handle{};  // as given, without ticket
};

class Context {
 public:
  Context(uint64_t id, int32_t traffic_class) : id_(id), traffic_class_(traffic_class) {}

  uint64_t id() const { return id_; }
  int32_t traffic_class() const { return traffic_class_; }

  Comm* add(std::unique_ptr<Comm> comm) {
    Comm* plain = comm.get();
    const std::lock_guard lock(mutex_);
    comms_.emplace(plain, std::move(comm));
    return plain;
  }
  void remove(Comm* comm) {
    const std::lock_guard lock(mutex_);
    comms_.erase(comm);
  }

  // What goes with every send from now on. One store: NCCL says it before each of its rounds, from
  // any of its threads.
  void set_hints(const TrafficHints& hints) { hints_.store(hints, std::memory_order_relaxed); }
  TrafficHints hints() const { return hints_.load(std::memory_order_relaxed); }

  // For connect(), which holds it throughout.
  std::mutex& mutex() { return mutex_; }
  // Under the mutex. By ticket, which is never 0.
  std::unordered_map<uint64_t, PendingConnect> connecting;
  uint64_t next_ticket() { return ++last_ticket_; }

  // Under the process's mutex: endpoints that this context keeps open.
  std::bitset<kMaxDevices> devices_used;

 private:
  const uint64_t id_;
  const int32_t traffic_class_;
  std::mutex mutex_;
  uint64_t last_ticket_ = 0;
  std::unordered_map<Comm*, std::unique_ptr<Comm>> comms_;
  std::atomic<TrafficHints> hints_{TrafficHints{}};
  static_assert(decltype(hints_)::is_always_lock_free);
};

}  // namespace weft::plugin
