// SPDX-License-Identifier: Apache-2.0
//
// What every version of NCCL's network plugin interface shares: result codes, the logger, the
// profiler callback, pointer types and limits.
//
// This is our own declaration of a binary interface, written from facts about it; the names are
// ours, the values and the layout are NCCL's. Plain C types only, so that a C program may include
// it too (there the names stand without the namespace). Nothing here owns or does anything.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
namespace weft::nccl {
extern "C" {
#else
#include <assert.h>  // static_assert
#endif

/// ncclResult_t. A data call that returns anything but kSuccess ends NCCL's progress thread.
typedef enum Result {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,  // the right code for a peer that died
  kInProgress = 7,
  kTimeout = 8
} Result;

/// ncclDebugLogLevel: NCCL prints a line when its NCCL_DEBUG is at least this level.
typedef enum LogLevel {
  kLogNone = 0,
  kLogVersion = 1,
  kLogWarn = 2,
  kLogInfo = 3,
  kLogAbort = 4,
  kLogTrace = 5
} LogLevel;

/// The subsystem flags of the logger that concern a network plugin (NCCL_DEBUG_SUBSYS).
typedef enum LogSubsystem {
  kLogInit = 0x1,
  kLogNet = 0x10,
  kLogEnv = 0x80,
  kLogReg = 0x2000
} LogSubsystem;

/// ncclDebugLogger_t: printf-like; `file` and `line` name the caller. Callable from any thread.
typedef void (*Logger)(LogLevel level, unsigned long flags, const char* file, int line,
                       const char* format, ...);

/// ncclProfilerCallback_t (API v10 and later); may be null.
typedef Result (*ProfilerCallback)(void** event_handle, int type, void* parent_handle,
                                   int64_t plugin_id, void* ext_data);

/// What kind of memory a pointer names: `type` of regMr, and a mask in Properties::ptr_support.
enum { kPtrHost = 0x1, kPtrCuda = 0x2, kPtrDmaBuf = 0x4 };

/// Bits of the protocol mask that setNetAttr is given (API v11 and later). All bits are set when
/// nothing is said, as before connect and for point-to-point operations.
enum { kProtocolLL = 0x1, kProtocolLL128 = 0x2, kProtocolSimple = 0x4 };

/// ncclNetDeviceType: kDeviceHost means that the CPU drives the device.
enum { kDeviceHost = 0, kDeviceUnpack = 1 };

enum {
  kHandleBytes = 128,  // what listen fills in and connect gets
  kMaxRequests = 32,   // requests in flight on a comm (8 before NCCL 2.19), times maxRecvs
  kMaxReceives = 8,    // parts of one grouped irecv that NCCL asks for at most
  kTrafficClassUndefined = -1
};

/// ncclNetDeviceHandle_vN_t, the same from v7 to v12: for devices that the GPU drives; those that
/// the CPU drives leave it null.
typedef struct DeviceHandle {
  int device_type;
  int device_version;
  void* handle;
  size_t size;
  int needs_proxy_progress;
} DeviceHandle;

/// The largest value that Properties::max_p2p_bytes and max_coll_bytes may have.
#define WEFT_NCCL_MAX_NET_BYTES ((size_t)1 << 40)

/// `*request` on entry of irecv when the caller does not need the completion to be exact.
#define WEFT_NCCL_OPTIONAL_RECV_COMPLETION ((void*)0x1)

#ifdef __cplusplus
}  // extern "C"
}  // namespace weft::nccl
#define WEFT_NCCL_NAME(name) ::weft::nccl::name
#else
#define WEFT_NCCL_NAME(name) name
#endif

/// Pins of the layout, for x86-64 and aarch64 Linux.
#define WEFT_NCCL_AT(type, member, offset) \
  static_assert(offsetof(WEFT_NCCL_NAME(type), member) == offset, #type "." #member " has moved")
#define WEFT_NCCL_SIZE(type, size) \
  static_assert(sizeof(WEFT_NCCL_NAME(type)) == size, #type " has changed its size")

WEFT_NCCL_SIZE(Result, 4);
WEFT_NCCL_SIZE(DeviceHandle, 32);
WEFT_NCCL_AT(DeviceHandle, handle, 8);
WEFT_NCCL_AT(DeviceHandle, size, 16);
WEFT_NCCL_AT(DeviceHandle, needs_proxy_progress, 24);

static_assert(sizeof(void*) == 8, "NCCL runs on 64-bit machines only");
