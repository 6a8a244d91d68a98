// SPDX-License-Identifier: Apache-2.0
// plugin/net.h, the calls that move data: a check, one call of the endpoint's, and a code for NCCL.
//
// A request that failed is over in the endpoint and may be asked for again by NCCL, so the comm's
// sticky error is looked at before the request is.
#include <array>
#include <span>

#include "plugin/comm.h"
#include "plugin/guard.h"
#include "plugin/net.h"
#include "transport/system/phrase.h"

namespace weft::plugin {
namespace {

nccl::Result error_of(const Comm& comm) { return comm.error.load(std::memory_order_relaxed); }

// The flow is at its end. The first to notice says so.
nccl::Result fail(const char* call, Comm& comm, const Status& status) noexcept {
  const nccl::Result code = status.ok() ? nccl::kInternalError : code_of(status.code());
  nccl::Result before = nccl::kSuccess;
  if (!comm.error.compare_exchange_strong(before, code, std::memory_order_relaxed)) return before;
  log_warn("{}: {}", call, status.words());
  return code;
}

nccl::Result conclude(const char* call, Comm& comm, Answer answer, Request* posted,
                      void** request) {
  switch (answer) {
    case Answer::kPosted:
      posted->user = &comm;
      *request = posted;
      return nccl::kSuccess;
    case Answer::kAgain: return nccl::kSuccess;
    case Answer::kFailed: return fail(call, comm, comm.endpoint->failure_of(*comm.flow()));
    case Answer::kInvalid: break;
  }
  return refuse(call,
                comm.kind == Comm::Kind::kSend
                    ? "the memory is not within the registration given, or the send is larger "
                      "than the receive that the peer has posted"
                    : "the memory is not within the registration given");
}

}  // namespace

nccl::Result isend(void* send_comm, void* data, size_t size, int tag, void* mhandle,
                   void** request) noexcept {
  return guarded("isend", [&]() -> nccl::Result {
    if (request == nullptr) return refuse("isend", "no place for the request");
    *request = nullptr;
    Comm* comm = comm_of(send_comm, Comm::Kind::kSend);
    if (comm == nullptr) return refuse("isend", "not a send comm");
    const nccl::Result failed = error_of(*comm);
    if (failed != nccl::kSuccess) return failed;
    if (size > 0 && data == nullptr) return refuse("isend", "no data");
    if (size > kMaxMessageBytes) return refuse("isend", "more than maxP2pBytes");
    Request* posted = nullptr;
    const Answer answer = comm->endpoint->send(comm->send, static_cast<const std::byte*>(data),
                                               size, tag, static_cast<const Registration*>(mhandle),
                                               &posted, comm->context->hints());
    return conclude("isend", *comm, answer, posted, request);
  });
}

nccl::Result irecv(void* receive_comm, int count, void** data, size_t* sizes, int* tags,
                   void** mhandles, void** request) noexcept {
  return guarded("irecv", [&]() -> nccl::Result {
    if (request == nullptr) return refuse("irecv", "no place for the request");
    *request = nullptr;
    Comm* comm = comm_of(receive_comm, Comm::Kind::kReceive);
    if (comm == nullptr) return refuse("irecv", "not a receive comm");
    const nccl::Result failed = error_of(*comm);
    if (failed != nccl::kSuccess) return failed;
    if (count < 1 || count > wire::kMaxParts) return refuse("irecv", "1 to maxRecvs parts");
    if (data == nullptr || sizes == nullptr || tags == nullptr) {
      return refuse("irecv", "no data, sizes or tags");
    }
    std::array<ReceiveBuffer, wire::kMaxParts> parts;
    for (int i = 0; i < count; ++i) {
      if (sizes[i] > 0 && data[i] == nullptr) return refuse("irecv", "a part has no data");
      parts[i].base = static_cast<std::byte*>(data[i]);
      parts[i].size = sizes[i];
      parts[i].tag = tags[i];
      if (mhandles != nullptr)
        parts[i].registration = static_cast<const Registration*>(mhandles[i]);
    }
    Request* posted = nullptr;
    const Answer answer = comm->endpoint->receive(
        comm->receive, std::span(parts).first(static_cast<size_t>(count)), &posted);
    return conclude("irecv", *comm, answer, posted, request);
  });
}

nccl::Result iflush(void* receive_comm, int count, void** data, int* sizes, void** mhandles,
                    void** request) noexcept {
  return guarded("iflush", [&]() -> nccl::Result {
    if (request == nullptr) return refuse("iflush", "no place for the request");
    *request = nullptr;
    Comm* comm = comm_of(receive_comm, Comm::Kind::kReceive);
    if (comm == nullptr) return refuse("iflush", "not a receive comm");
    if (count < 1 || count > wire::kMaxParts || data == nullptr || sizes == nullptr ||
        mhandles == nullptr) {
      return refuse("iflush", "no parts, or more than maxRecvs");
    }
    return error_of(*comm);  // host memory: what a receive reported done is there for everybody
  });
}

nccl::Result test(void* request, int* done, int* sizes) noexcept {
  return guarded("test", [&]() -> nccl::Result {
    if (done != nullptr) *done = 0;
    if (request == nullptr || done == nullptr) return refuse("test", "a null pointer");
    Request& ours = *static_cast<Request*>(request);
    Comm* comm = static_cast<Comm*>(ours.user);
    if (comm == nullptr) return refuse("test", "the request was reported done before");
    const nccl::Result failed = error_of(*comm);
    if (failed != nccl::kSuccess) return failed;
    bool over = false;
    int parts = 0;
    std::array<uint64_t, wire::kMaxParts> received;
    const Status status = comm->endpoint->test(&ours, &over, received.data(), &parts);
    if (!status.ok()) return fail("test", *comm, status);
    if (!over) return nccl::kSuccess;
    ours.user = nullptr;
    *done = 1;
    for (int i = 0; sizes != nullptr && i < parts; ++i) sizes[i] = static_cast<int>(received[i]);
    return nccl::kSuccess;
  });
}

}  // namespace weft::plugin
