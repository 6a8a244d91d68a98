// SPDX-License-Identifier: Apache-2.0
//
// Version 11 of NCCL's network plugin interface (NCCL 2.28 and later): the symbol
// `ncclNetPlugin_v11` is a NetV11.
//
// Our own declaration; layout, sizes and offsets are pinned by the static_asserts at the end
// (x86-64 and aarch64 Linux). `Ptr` members marked "may be null" are checked by callers before use.
// Threading, as recorded from NCCL: listen, connect, accept, registration and close come from one
// thread of a communicator, isend, irecv, iflush and test from another; different communicators
// are fully concurrent.
#pragma once

#include "plugin/nccl/common.h"

#ifdef __cplusplus
namespace weft::nccl {
extern "C" {
#endif

enum { kMaxVDeviceV11 = 4 };

/// ncclNetVDeviceProps_v11_t: the physical devices behind one (virtual) device.
typedef struct VDeviceV11 {
  int count;
  int devices[kMaxVDeviceV11];
} VDeviceV11;

/// ncclNetCommConfig_v11_t
typedef struct CommConfigV11 {
  int traffic_class;  // kTrafficClassUndefined when the user gave none
} CommConfigV11;

/// ncclNetProperties_v11_t
typedef struct PropertiesV11 {
  char* name;         // for logs
  char* pci_path;     // "/sys/..." or null for a virtual device
  uint64_t guid;      // the same for ports of one card
  int ptr_support;    // mask of kPtrHost, kPtrCuda, kPtrDmaBuf
  int reg_is_global;  // a registration serves every comm
  int force_flush;    // flush even when NCCL thinks that it is not needed
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_recvs;    // the most parts of one irecv
  int device_type;  // kDeviceHost
  int device_version;
  VDeviceV11 vdevice;
  size_t max_p2p_bytes;  // in (0, WEFT_NCCL_MAX_NET_BYTES]
  size_t max_coll_bytes;
  int max_multi_request_size;
} PropertiesV11;

/// One direction of ncclNetAttr_v11_t
typedef struct CommAttrV11 {
  int32_t max_concurrent_peers;
  int32_t min_concurrent_peers;
  int32_t max_flows_per_peer;
  int32_t min_flows_per_peer;
} CommAttrV11;

/// ncclNetAttr_v11_t: a hint, set before every attempt to connect or accept.
typedef struct NetAttrV11 {
  CommAttrV11 send;
  CommAttrV11 recv;
  uint32_t op;
  uint32_t algo;
  uint32_t proto;
} NetAttrV11;

/// ncclNet_v11_t, members in NCCL's order.
typedef struct NetV11 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, CommConfigV11* config, Logger logger,
                 ProfilerCallback profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV11* properties);
  Result (*listen)(void* context, int device, void* handle, void** listen_comm);
  // Success with *send_comm = null: not yet, call again with the same (writable) handle.
  Result (*connect)(void* context, int device, void* handle, void** send_comm,
                    DeviceHandle** device_handle);
  Result (*accept)(void* listen_comm, void** recv_comm, DeviceHandle** device_handle);
  Result (*reg_mr)(void* comm, void* data, size_t size, int type, void** mhandle);
  Result (*reg_mr_dma_buf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                           void** mhandle);  // may be null
  Result (*dereg_mr)(void* comm, void* mhandle);
  // Success with *request = null: not ready, call again with the same arguments.
  Result (*isend)(void* send_comm, void* data, size_t size, int tag, void* mhandle, void* profile,
                  void** request);
  Result (*irecv)(void* recv_comm, int count, void** data, size_t* sizes, int* tags,
                  void** mhandles, void** profiles, void** request);
  // *request = null: nothing to wait for. Sizes stayed int in this one.
  Result (*iflush)(void* recv_comm, int count, void** data, int* sizes, void** mhandles,
                   void** request);  // may be null
  // Writes one size a part; `sizes` may be null.
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* send_comm);
  Result (*close_recv)(void* recv_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);  // may be null
  Result (*irecv_consumed)(void* recv_comm, int count, void* request);        // may be null
  Result (*make_vdevice)(int* device, VDeviceV11* members);                   // may be null
  Result (*finalize)(void* context);
  Result (*set_net_attr)(void* context, NetAttrV11* attributes);  // may be null
} NetV11;

#ifdef __cplusplus
}  // extern "C"
}  // namespace weft::nccl
#endif

WEFT_NCCL_SIZE(VDeviceV11, 20);
WEFT_NCCL_SIZE(CommConfigV11, 4);
WEFT_NCCL_SIZE(PropertiesV11, 112);
WEFT_NCCL_SIZE(NetAttrV11, 44);
WEFT_NCCL_SIZE(NetV11, 176);

WEFT_NCCL_AT(PropertiesV11, name, 0);
WEFT_NCCL_AT(PropertiesV11, pci_path, 8);
WEFT_NCCL_AT(PropertiesV11, guid, 16);
WEFT_NCCL_AT(PropertiesV11, ptr_support, 24);
WEFT_NCCL_AT(PropertiesV11, reg_is_global, 28);
WEFT_NCCL_AT(PropertiesV11, force_flush, 32);
WEFT_NCCL_AT(PropertiesV11, speed_mbps, 36);
WEFT_NCCL_AT(PropertiesV11, port, 40);
WEFT_NCCL_AT(PropertiesV11, latency_us, 44);
WEFT_NCCL_AT(PropertiesV11, max_comms, 48);
WEFT_NCCL_AT(PropertiesV11, max_recvs, 52);
WEFT_NCCL_AT(PropertiesV11, device_type, 56);
WEFT_NCCL_AT(PropertiesV11, device_version, 60);
WEFT_NCCL_AT(PropertiesV11, vdevice, 64);
WEFT_NCCL_AT(PropertiesV11, max_p2p_bytes, 88);
WEFT_NCCL_AT(PropertiesV11, max_coll_bytes, 96);
WEFT_NCCL_AT(PropertiesV11, max_multi_request_size, 104);

WEFT_NCCL_AT(NetAttrV11, recv, 16);
WEFT_NCCL_AT(NetAttrV11, op, 32);
WEFT_NCCL_AT(NetAttrV11, proto, 40);

WEFT_NCCL_AT(NetV11, name, 0);
WEFT_NCCL_AT(NetV11, init, 8);
WEFT_NCCL_AT(NetV11, listen, 32);
WEFT_NCCL_AT(NetV11, connect, 40);
WEFT_NCCL_AT(NetV11, accept, 48);
WEFT_NCCL_AT(NetV11, reg_mr, 56);
WEFT_NCCL_AT(NetV11, dereg_mr, 72);
WEFT_NCCL_AT(NetV11, isend, 80);
WEFT_NCCL_AT(NetV11, irecv, 88);
WEFT_NCCL_AT(NetV11, iflush, 96);
WEFT_NCCL_AT(NetV11, test, 104);
WEFT_NCCL_AT(NetV11, close_send, 112);
WEFT_NCCL_AT(NetV11, get_device_mr, 136);
WEFT_NCCL_AT(NetV11, irecv_consumed, 144);
WEFT_NCCL_AT(NetV11, make_vdevice, 152);
WEFT_NCCL_AT(NetV11, finalize, 160);
WEFT_NCCL_AT(NetV11, set_net_attr, 168);
