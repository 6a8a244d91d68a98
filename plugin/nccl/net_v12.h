// SPDX-License-Identifier: Apache-2.0
//
// Version 12 of NCCL's network plugin interface (NCCL 2.30.3 and later): version 11, but a device
// may be made of eight, and says on which rail and plane of the network it is.
//
// Our own declaration; the layout is pinned by the static_asserts at the end. What the members mean
// is said in net_v11.h.
#pragma once

#include "plugin/nccl/net_v11.h"

#ifdef __cplusplus
namespace weft::nccl {
extern "C" {
#endif

enum { kRailUndefined = -1, kPlaneUndefined = -1 };

enum { kMaxVDeviceV12 = 8 };

/// ncclNetVDeviceProps_v12_t
typedef struct VDeviceV12 {
  int count;
  int devices[kMaxVDeviceV12];
} VDeviceV12;

/// ncclNetProperties_v12_t
typedef struct PropertiesV12 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_recvs;
  int device_type;
  int device_version;
  VDeviceV12 vdevice;
  size_t max_p2p_bytes;
  size_t max_coll_bytes;
  int max_multi_request_size;
  int16_t rail_id;  // kRailUndefined where nobody said
  int16_t plane_id;
} PropertiesV12;

/// ncclNet_v12_t, members in NCCL's order.
typedef struct NetV12 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, CommConfigV11* config, Logger logger,
                 ProfilerCallback profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV12* properties);
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
  Result (*make_vdevice)(int* device, VDeviceV12* members);                   // may be null
  Result (*finalize)(void* context);
  Result (*set_net_attr)(void* context, NetAttrV11* attributes);  // may be null
} NetV12;

#ifdef __cplusplus
}  // extern "C"
}  // namespace weft::nccl
#endif

WEFT_NCCL_SIZE(VDeviceV12, 36);
WEFT_NCCL_SIZE(PropertiesV12, 128);
WEFT_NCCL_SIZE(NetV12, 176);
WEFT_NCCL_AT(PropertiesV12, reg_is_global, 28);
WEFT_NCCL_AT(PropertiesV12, speed_mbps, 36);
WEFT_NCCL_AT(PropertiesV12, device_type, 56);
WEFT_NCCL_AT(PropertiesV12, vdevice, 64);
WEFT_NCCL_AT(PropertiesV12, max_p2p_bytes, 104);
WEFT_NCCL_AT(PropertiesV12, max_coll_bytes, 112);
WEFT_NCCL_AT(PropertiesV12, max_multi_request_size, 120);
WEFT_NCCL_AT(PropertiesV12, rail_id, 124);
WEFT_NCCL_AT(PropertiesV12, plane_id, 126);
WEFT_NCCL_AT(NetV12, init, 8);
WEFT_NCCL_AT(NetV12, listen, 32);
WEFT_NCCL_AT(NetV12, isend, 80);
WEFT_NCCL_AT(NetV12, make_vdevice, 152);
WEFT_NCCL_AT(NetV12, finalize, 160);
WEFT_NCCL_AT(NetV12, set_net_attr, 168);
