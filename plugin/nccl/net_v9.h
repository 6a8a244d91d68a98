// SPDX-License-Identifier: Apache-2.0
//
// Version 9 of NCCL's network plugin interface (NCCL 2.24 and 2.25): version 8 with messages larger
// than int, and devices made of several.
//
// Our own declaration; the layout is pinned by the static_asserts at the end. What the members mean
// is said in net_v11.h.
#pragma once

#include "plugin/nccl/common.h"

#ifdef __cplusplus
namespace weft::nccl {
extern "C" {
#endif

enum { kMaxVDeviceV9 = 4 };

/// ncclNetVDeviceProps_v9_t
typedef struct VDeviceV9 {
  int count;
  int devices[kMaxVDeviceV9];
} VDeviceV9;

/// ncclNetProperties_v9_t
typedef struct PropertiesV9 {
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
  VDeviceV9 vdevice;
  size_t max_p2p_bytes;
  size_t max_coll_bytes;
} PropertiesV9;

/// ncclNet_v9_t, members in NCCL's order.
typedef struct NetV9 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV9* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm, DeviceHandle** device_handle);
  Result (*accept)(void* listen_comm, void** recv_comm, DeviceHandle** device_handle);
  Result (*reg_mr)(void* comm, void* data, size_t size, int type, void** mhandle);
  Result (*reg_mr_dma_buf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                           void** mhandle);
  Result (*dereg_mr)(void* comm, void* mhandle);
  Result (*isend)(void* send_comm, void* data, size_t size, int tag, void* mhandle, void** request);
  Result (*irecv)(void* recv_comm, int count, void** data, size_t* sizes, int* tags,
                  void** mhandles, void** request);
  Result (*iflush)(void* recv_comm, int count, void** data, int* sizes, void** mhandles,
                   void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* send_comm);
  Result (*close_recv)(void* recv_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  Result (*irecv_consumed)(void* recv_comm, int count, void* request);
  Result (*make_vdevice)(int* device, VDeviceV9* members);
} NetV9;

#ifdef __cplusplus
}  // extern "C"
}  // namespace weft::nccl
#endif

WEFT_NCCL_SIZE(VDeviceV9, 20);
WEFT_NCCL_SIZE(PropertiesV9, 104);
WEFT_NCCL_AT(PropertiesV9, reg_is_global, 28);
WEFT_NCCL_AT(PropertiesV9, force_flush, 32);
WEFT_NCCL_AT(PropertiesV9, speed_mbps, 36);
WEFT_NCCL_AT(PropertiesV9, max_recvs, 52);
WEFT_NCCL_AT(PropertiesV9, device_type, 56);
WEFT_NCCL_AT(PropertiesV9, vdevice, 64);
WEFT_NCCL_AT(PropertiesV9, max_p2p_bytes, 88);
WEFT_NCCL_AT(PropertiesV9, max_coll_bytes, 96);
WEFT_NCCL_SIZE(NetV9, 160);
WEFT_NCCL_AT(NetV9, listen, 32);
WEFT_NCCL_AT(NetV9, connect, 40);
WEFT_NCCL_AT(NetV9, reg_mr, 56);
WEFT_NCCL_AT(NetV9, isend, 80);
WEFT_NCCL_AT(NetV9, test, 104);
WEFT_NCCL_AT(NetV9, close_listen, 128);
WEFT_NCCL_AT(NetV9, irecv_consumed, 144);
WEFT_NCCL_AT(NetV9, make_vdevice, 152);
