// SPDX-License-Identifier: Apache-2.0
// plugin/net.h, the calls before and after data: contexts, devices, connections, memory.
#include <algorithm>
#include <cstring>
#include <new>

#include "plugin/comm.h"
#include "plugin/guard.h"
#include "plugin/hints.h"
#include "plugin/net.h"
#include "plugin/process.h"
#include "transport/system/phrase.h"
#include "transport/wire/handshake.h"

namespace weft::plugin {
namespace {

static_assert(sizeof(Handle) == nccl::kHandleBytes);

// The last bytes of a handle are ours: listen leaves them 0, connect notes its ticket there.
constexpr size_t kTicketAt = sizeof(Handle) - sizeof(uint64_t);
static_assert(wire::kHandleBytes <= kTicketAt);

uint64_t ticket_in(const void* handle) {
  uint64_t ticket;
  std::memcpy(&ticket, static_cast<const std::byte*>(handle) + kTicketAt, sizeof ticket);
  return ticket;
}

void put_ticket(void* handle, uint64_t ticket) {
  std::memcpy(static_cast<std::byte*>(handle) + kTicketAt, &ticket, sizeof ticket);
}

std::unique_ptr<Comm> make_comm(Comm::Kind kind, Context* context, Endpoint* endpoint) {
  auto comm = std::make_unique<Comm>();
  comm->kind = kind;
  comm->context = context;
  comm->endpoint = endpoint;
  return comm;
}

// Under the context's mutex: the attempt that this handle stands for, begun now if there is none.
Result<uint64_t> attempt_for(Context& context, int device, void* handle, int traffic_class) {
  const uint64_t ticket = ticket_in(handle);
  Handle plain;
  std::memcpy(plain.data(), handle, plain.size());
  put_ticket(plain.data(), 0);
  const auto found = context.connecting.find(ticket);
  if (found != context.connecting.end() && found->second.handle == plain) return ticket;

  const Result<Endpoint*> endpoint = Process::instance().use(context, device);
  if (!endpoint.ok()) return endpoint.status();
  const uint64_t fresh = context.next_ticket();
  PendingConnect& pending = context.connecting[fresh];
  pending.endpoint = *endpoint;
  pending.handle = plain;
  const Result<Connector*> connector =
      pending.endpoint->start_connect(context.id(), traffic_class, plain);
  if (!connector.ok()) {
    context.connecting.erase(fresh);
    return connector.status();
  }
  pending.connector = *connector;
  put_ticket(handle, fresh);
  return fresh;
}

nccl::Result close_flow(const char* call, Comm* comm) {
  if (comm == nullptr) return refuse(call, "not a comm of this kind");
  if (comm->kind == Comm::Kind::kSend) {
    comm->endpoint->close(comm->send);
  } else {
    comm->endpoint->close(comm->receive);
  }
  comm->context->remove(comm);
  return nccl::kSuccess;
}

}  // namespace

nccl::Result init(void** context, int traffic_class, nccl::Logger logger) noexcept {
  return guarded("init", [&]() -> nccl::Result {
    if (context == nullptr) return refuse("init", "no place for the context");
    *context = nullptr;
    Context* entered = nullptr;
    const nccl::Result result = Process::instance().enter(traffic_class, logger, &entered);
    *context = entered;
    return result;
  });
}

nccl::Result finalize(void* context) noexcept {
  return guarded_end("finalize", [&] {
    if (context != nullptr) Process::instance().leave(static_cast<Context*>(context));
    return nccl::kSuccess;
  });
}

nccl::Result set_attributes(void* context, const NetAttributes& attributes) noexcept {
  if (context == nullptr) return refuse("setNetAttr", "no context");
  static_cast<Context*>(context)->set_hints(hints_of(attributes));
  return nccl::kSuccess;
}

nccl::Result devices(int* count) noexcept {
  return guarded("devices", [&] {
    if (count == nullptr) return refuse("devices", "no place for the number");
    *count = Process::instance().device_count();
    return *count > 0 ? nccl::kSuccess : nccl::kInvalidUsage;
  });
}

nccl::Result get_properties(int device, Properties* properties) noexcept {
  return guarded("getProperties", [&] {
    if (properties == nullptr) return refuse("getProperties", "no place for the properties");
    if (Process::instance().properties(device, properties)) return nccl::kSuccess;
    return refuse("getProperties", "there is no such device");
  });
}

nccl::Result listen(void* context, int device, void* handle, void** listen_comm) noexcept {
  return guarded("listen", [&]() -> nccl::Result {
    if (listen_comm != nullptr) *listen_comm = nullptr;
    if (context == nullptr || handle == nullptr || listen_comm == nullptr) {
      return refuse("listen", "a null pointer");
    }
    Context& ours = *static_cast<Context*>(context);
    const Result<Endpoint*> endpoint = Process::instance().use(ours, device);
    if (!endpoint.ok()) return report("listen", endpoint.status());
    std::unique_ptr<Comm> comm = make_comm(Comm::Kind::kListen, &ours, *endpoint);
    Handle made;
    const Result<Listener*> listener = comm->endpoint->listen(ours.id(), &made);
    if (!listener.ok()) return report("listen", listener.status());
    comm->listener = *listener;
    std::memcpy(handle, made.data(), made.size());
    *listen_comm = ours.add(std::move(comm));
    return nccl::kSuccess;
  });
}

nccl::Result connect(void* context, int device, void* handle, void** send_comm,
                     int traffic_class) noexcept {
  return guarded("connect", [&]() -> nccl::Result {
    if (send_comm != nullptr) *send_comm = nullptr;
    if (context == nullptr || handle == nullptr || send_comm == nullptr) {
      return refuse("connect", "a null pointer");
    }
    Context& ours = *static_cast<Context*>(context);
    if (traffic_class == nccl::kTrafficClassUndefined) traffic_class = ours.traffic_class();
    std::unique_ptr<Comm> comm;
    {
      const std::lock_guard lock(ours.mutex());
      const Result<uint64_t> ticket = attempt_for(ours, device, handle, traffic_class);
      if (!ticket.ok()) return report("connect", ticket.status());
      const PendingConnect& pending = ours.connecting[*ticket];
      SendFlow* flow = nullptr;
      const Status status = pending.endpoint->connect(pending.connector, &flow);
      if (status.ok() && flow == nullptr) return nccl::kSuccess;  // not yet
      Endpoint* endpoint = pending.endpoint;
      ours.connecting.erase(*ticket);
      put_ticket(handle, 0);
      if (!status.ok()) return report("connect", status);
      comm = make_comm(Comm::Kind::kSend, &ours, endpoint);
      comm->send = flow;
    }
    *send_comm = ours.add(std::move(comm));
    return nccl::kSuccess;
  });
}

nccl::Result accept(void* listen_comm, void** receive_comm) noexcept {
  return guarded("accept", [&]() -> nccl::Result {
    if (receive_comm != nullptr) *receive_comm = nullptr;
    Comm* listening = comm_of(listen_comm, Comm::Kind::kListen);
    if (listening == nullptr || receive_comm == nullptr) {
      return refuse("accept", "a null pointer, or not a listen comm");
    }
    ReceiveFlow* flow = nullptr;
    const Status status = listening->endpoint->accept(listening->listener, &flow);
    if (!status.ok()) return report("accept", status);
    if (flow == nullptr) return nccl::kSuccess;  // not yet
    std::unique_ptr<Comm> comm =
        make_comm(Comm::Kind::kReceive, listening->context, listening->endpoint);
    comm->receive = flow;
    *receive_comm = listening->context->add(std::move(comm));
    return nccl::kSuccess;
  });
}

nccl::Result close_send(void* send_comm) noexcept {
  return guarded_end(
      "closeSend", [&] { return close_flow("closeSend", comm_of(send_comm, Comm::Kind::kSend)); });
}

nccl::Result close_receive(void* receive_comm) noexcept {
  return guarded_end("closeRecv", [&] {
    return close_flow("closeRecv", comm_of(receive_comm, Comm::Kind::kReceive));
  });
}

nccl::Result close_listen(void* listen_comm) noexcept {
  return guarded_end("closeListen", [&]() -> nccl::Result {
    Comm* comm = comm_of(listen_comm, Comm::Kind::kListen);
    if (comm == nullptr) return refuse("closeListen", "not a listen comm");
    comm->endpoint->close_listener(comm->listener);
    comm->context->remove(comm);
    return nccl::kSuccess;
  });
}

nccl::Result register_memory(void* comm, void* data, size_t size, int type,
                             void** mhandle) noexcept {
  return guarded("regMr", [&]() -> nccl::Result {
    if (mhandle != nullptr) *mhandle = nullptr;
    Comm* ours = flow_comm_of(comm);
    if (ours == nullptr || data == nullptr || mhandle == nullptr) {
      return refuse("regMr", "a null pointer, or not a send or receive comm");
    }
    if (type != nccl::kPtrHost) {
      return refuse("regMr", "only host memory can be registered; this is of another kind");
    }
    const nccl::Result failed = ours->error.load(std::memory_order_relaxed);
    if (failed != nccl::kSuccess) return failed;
    MemoryRange range;
    range.base = static_cast<std::byte*>(data);
    range.bytes = size;
    const Result<Registration*> made = ours->endpoint->register_memory(ours->flow(), range);
    if (!made.ok()) return report("regMr", made.status());
    *mhandle = *made;
    return nccl::kSuccess;
  });
}

nccl::Result register_dma_buf(void* comm, void* data, size_t, int, uint64_t, int,
                              void** mhandle) noexcept {
  if (mhandle != nullptr) *mhandle = nullptr;
  if (flow_comm_of(comm) == nullptr || data == nullptr || mhandle == nullptr) {
    return refuse("regMrDmaBuf", "a null pointer, or not a send or receive comm");
  }
  return refuse("regMrDmaBuf", "DMA-BUF memory is not supported, and ptrSupport says so");
}

nccl::Result deregister_memory(void* comm, void* mhandle) noexcept {
  return guarded_end("deregMr", [&]() -> nccl::Result {
    Comm* ours = flow_comm_of(comm);
    if (ours == nullptr || mhandle == nullptr) {
      return refuse("deregMr", "a null pointer, or not a send or receive comm");
    }
    ours->endpoint->deregister(static_cast<Registration*>(mhandle));
    return nccl::kSuccess;
  });
}

}  // namespace weft::plugin
