// SPDX-License-Identifier: Apache-2.0
// The exported table of the TCP plugin, and the calls that need no file of their own.
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "tests/faulty/fault.h"
#include "tests/faulty/tcp_net.h"

namespace weft::faulty {
namespace {

nccl::Logger logger = nullptr;
char device_name[] = "tcp0";
// kLateRead: where this thread still has to send something.
thread_local Comm* late = nullptr;

Result init(void** context, uint64_t, nccl::CommConfigV11*, nccl::Logger log,
            nccl::ProfilerCallback) {
  set_logger(log);
  *context = new_context();
  return nccl::kSuccess;
}

Result devices(int* count) {
  *count = 1;
  return nccl::kSuccess;
}

Result get_properties(int device, nccl::PropertiesV11* properties) {
  if (device != 0) return nccl::kInvalidArgument;
  *properties = nccl::PropertiesV11{};
  properties->name = device_name;
  properties->guid = 1;
  properties->ptr_support = nccl::kPtrHost;
  properties->speed_mbps = 10000;
  properties->port = 1;
  properties->max_comms = 1024;
  properties->max_recvs = kParts;
  properties->device_type = nccl::kDeviceHost;
  properties->vdevice.count = 1;
  properties->max_p2p_bytes = WEFT_NCCL_MAX_NET_BYTES;
  properties->max_coll_bytes = WEFT_NCCL_MAX_NET_BYTES;
  properties->max_multi_request_size = 1;
  return nccl::kSuccess;
}

Result reg_mr(void* comm, void* data, size_t size, int type, void** mhandle) {
  if (type != nccl::kPtrHost) return nccl::kInvalidArgument;
  *mhandle = new Region{static_cast<Comm*>(comm), static_cast<unsigned char*>(data), size};
  return nccl::kSuccess;
}

Result dereg_mr(void*, void* mhandle) {
  delete static_cast<Region*>(mhandle);
  return nccl::kSuccess;
}

Result iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;  // host memory needs none
  return nccl::kSuccess;
}

Result test(void* handle, int* done, int* sizes) {
  auto& request = *static_cast<Request*>(handle);
  Comm& comm = *request.comm;
  const bool sends = comm.kind == Comm::Kind::kSend;
  *done = 0;
  if (has(Fault::kHang) && armed()) return nccl::kSuccess;
  while (has(Fault::kBlock) && armed()) ::pause();
  if (has(Fault::kError) && armed()) {
    warn("a made-up error");
    return nccl::kSystemError;
  }
  if (late != nullptr && late != &comm) progress_send(*late);
  late = nullptr;
  sends ? progress_send(comm) : progress_recv(comm);
  if (has(Fault::kLateRead) && sends && request.held) {
    // Done, says the plugin, and sends it with the next call.
    request.held = false;
    request.reported = true;
    late = &comm;
    *done = 1;
    if (sizes != nullptr) sizes[0] = static_cast<int>(request.sizes[0]);
    return nccl::kSuccess;
  }
  if (!request.complete) return comm.dead ? gone(Caller::kTest) : nccl::kSuccess;
  *done = 1;
  for (int i = 0; sizes != nullptr && i < request.parts; ++i) {
    sizes[i] = static_cast<int>(request.sizes[i]);
  }
  if (has(Fault::kSizeOverflow) && armed() && sizes != nullptr) {
    strike();
    sizes[request.parts] = 0;
  }
  request.reported = true;
  // kEarly: the rest of the payload is still to be read, into a request that stays known.
  if (sends || request.arrived == request.parts) request.open = false;
  return nccl::kSuccess;
}

// One line an endpoint, as the driver tool expects it of a plugin that knows its paths.
void write_stats() {
  const char* path = std::getenv("WEFT_STATS");
  const int fd = path != nullptr ? ::open(path, O_WRONLY | O_APPEND) : -1;
  if (fd < 0) return;
  constexpr char kLine[] =
      R"({"paths":[{"id":0,"bytes":100,"packets":1,"retransmitted":5},)"
      R"({"id":1,"bytes":0,"packets":0,"retransmitted":0},)"
      R"({"id":2,"bytes":50,"packets":1,"retransmitted":0}],"retransmitted":5,"lost":2})"
      "\n";
  if (::write(fd, kLine, sizeof kLine - 1) < 0) warn("WEFT_STATS cannot be written");
  ::close(fd);
}

Result finalize(void* context) {
  if (has(Fault::kStats)) write_stats();
  return free_context(context);
}

Result set_net_attr(void*, nccl::NetAttrV11*) { return nccl::kSuccess; }

}  // namespace

void set_logger(nccl::Logger log) { logger = log; }

void warn(const char* format, ...) {
  if (logger == nullptr) return;
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  logger(nccl::kLogWarn, nccl::kLogNet, "tcp_net", 0, "%s", text);
}

Result gone(Caller caller) {
  if (has(Fault::kDeaf)) return nccl::kSuccess;
  if (has(Fault::kDeafSend) && caller == Caller::kIsend) return nccl::kSuccess;
  if (has(Fault::kWrongError) && caller == Caller::kTest) return nccl::kSystemError;
  return nccl::kRemoteError;
}

bool covered(void* mhandle, const void* data, size_t size) {
  if (size == 0) return true;  // zero bytes need no registration
  const auto* region = static_cast<const Region*>(mhandle);
  const auto* at = static_cast<const unsigned char*>(data);
  if (region != nullptr && at >= region->from && size <= region->bytes &&
      at - region->from <= static_cast<ptrdiff_t>(region->bytes - size)) {
    return true;
  }
  warn("%zu bytes at %p are not registered", size, data);
  return false;
}

}  // namespace weft::faulty

extern "C" __attribute__((visibility("default"))) const weft::nccl::NetV11 ncclNetPlugin_v11;
const weft::nccl::NetV11 ncclNetPlugin_v11 = {
    "TCP",
    weft::faulty::init,
    weft::faulty::devices,
    weft::faulty::get_properties,
    weft::faulty::listen,
    weft::faulty::connect,
    weft::faulty::accept,
    weft::faulty::reg_mr,
    nullptr,
    weft::faulty::dereg_mr,
    weft::faulty::isend,
    weft::faulty::irecv,
    weft::faulty::iflush,
    weft::faulty::test,
    weft::faulty::close_comm,
    weft::faulty::close_comm,
    weft::faulty::close_listen,
    nullptr,
    nullptr,
    nullptr,
    weft::faulty::finalize,
    weft::faulty::set_net_attr,
};
