// SPDX-License-Identifier: Apache-2.0
//
// Version 7 of NCCL's network plugin interface (NCCL 2.19): version 6 with handles of devices that
// the GPU drives.
//
// Our own declaration; the layout is pinned by the static_asserts at the end. What the members mean
// is said in net_v11.h.
#pragma once

#include "plugin/nccl/common.h"

#ifdef __cplusplus
namespace weft::nccl {
extern "C" {
#endif

/// ncclNetProperties_v7_t
typedef struct PropertiesV7 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int ptr_support;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_recvs;
  int device_type;
  int device_version;
} PropertiesV7;

/// ncclNet_v7_t, members in NCCL's order.
typedef struct NetV7 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV7* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm, DeviceHandle** device_handle);
  Result (*accept)(void* listen_comm, void** recv_comm, DeviceHandle** device_handle);
  Result (*reg_mr)(void* comm, void* data, int size, int type, void** mhandle);
  Result (*reg_mr_dma_buf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                           void** mhandle);
  Result (*dereg_mr)(void* comm, void* mhandle);
  Result (*isend)(void* send_comm, void* data, int size, int tag, void* mhandle, void** request);
  Result (*irecv)(void* recv_comm, int count, void** data, int* sizes, int* tags, void** mhandles,
                  void** request);
  Result (*iflush)(void* recv_comm, int count, void** data, int* sizes, void** mhandles,
                   void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* send_comm);
  Result (*close_recv)(void* recv_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  Result (*irecv_consumed)(void* recv_comm, int count, void* request);
} NetV7;

#ifdef __cplusplus
}  // extern "C"
}  // namespace weft::nccl
#endif

WEFT_NCCL_SIZE(PropertiesV7, 56);
WEFT_NCCL_AT(PropertiesV7, speed_mbps, 28);
WEFT_NCCL_AT(PropertiesV7, max_recvs, 44);
WEFT_NCCL_AT(PropertiesV7, device_type, 48);
WEFT_NCCL_AT(PropertiesV7, device_version, 52);
WEFT_NCCL_SIZE(NetV7, 152);
WEFT_NCCL_AT(NetV7, listen, 32);
WEFT_NCCL_AT(NetV7, connect, 40);
WEFT_NCCL_AT(NetV7, reg_mr, 56);
WEFT_NCCL_AT(NetV7, isend, 80);
WEFT_NCCL_AT(NetV7, test, 104);
WEFT_NCCL_AT(NetV7, close_listen, 128);
WEFT_NCCL_AT(NetV7, irecv_consumed, 144);
