// SPDX-License-Identifier: Apache-2.0
// What the tables of several versions share: properties of whatever members a version has, sizes
// that are int below version 9 (of registrations below 8), device handles, which are always null.
//
// Nothing here keeps anything. Threading: any. What may fail: a size below zero, in words.
#pragma once

#include <array>
#include <cstddef>
#include <limits>

#include "plugin/guard.h"
#include "plugin/nccl/common.h"
#include "plugin/net.h"

namespace weft::plugin {

// `P` is any version's PropertiesVn: members that a version lacks are left out.
template <class P>
nccl::Result properties_as(int device, P* to) noexcept {
  if (to == nullptr) return get_properties(device, nullptr);
  Properties from;
  const nccl::Result result = get_properties(device, &from);
  if (result != nccl::kSuccess) return result;
  *to = {};
  to->name = const_cast<char*>(from.name);
  to->pci_path = const_cast<char*>(from.pci_path);
  to->guid = from.guid;
  to->ptr_support = from.pointer_types;
  to->speed_mbps = from.speed_mbps;
  to->port = from.port;
  to->latency_us = from.latency_us;
  to->max_comms = from.max_comms;
  to->max_recvs = from.max_receives;
  if constexpr (requires { to->device_type; }) to->device_type = nccl::kDeviceHost;
  if constexpr (requires { to->reg_is_global; }) to->reg_is_global = from.registration_is_global;
  if constexpr (requires { to->force_flush; }) to->force_flush = from.force_flush;
  if constexpr (requires { to->vdevice; }) {
    to->vdevice.count = 1;
    to->vdevice.devices[0] = device;
    to->max_p2p_bytes = from.max_p2p_bytes;
    to->max_coll_bytes = from.max_collective_bytes;
  }
  if constexpr (requires { to->max_multi_request_size; })
    to->max_multi_request_size = from.max_multi_request_size;
  if constexpr (requires { to->rail_id; }) to->rail_id = to->plane_id = -1;  // nobody said
  return nccl::kSuccess;
}

// A handle is for devices that the GPU drives.
inline void no_device_handle(nccl::DeviceHandle** handle) {
  if (handle != nullptr) *handle = nullptr;
}

inline nccl::Result accept_with_handle(void* listen_comm, void** receive_comm,
                                       nccl::DeviceHandle** device_handle) {
  no_device_handle(device_handle);
  return accept(listen_comm, receive_comm);
}

inline nccl::Result register_int(void* comm, void* data, int size, int type, void** mhandle) {
  if (size >= 0) return register_memory(comm, data, static_cast<size_t>(size), type, mhandle);
  if (mhandle != nullptr) *mhandle = nullptr;
  return refuse("regMr", "a size below zero");
}

inline nccl::Result isend_int(void* send_comm, void* data, int size, int tag, void* mhandle,
                              void** request) {
  if (size >= 0) return isend(send_comm, data, static_cast<size_t>(size), tag, mhandle, request);
  if (request != nullptr) *request = nullptr;
  return refuse("isend", "a size below zero");
}

inline nccl::Result irecv_int(void* receive_comm, int count, void** data, int* sizes, int* tags,
                              void** mhandles, void** request) {
  if (request != nullptr) *request = nullptr;
  std::array<size_t, nccl::kMaxReceives> wide{};
  if (sizes == nullptr || count < 1 || count > nccl::kMaxReceives) {
    return irecv(receive_comm, count, data, nullptr, tags, mhandles,
                 request);  // says what is wrong
  }
  for (int i = 0; i < count; ++i) {
    if (sizes[i] < 0) return refuse("irecv", "a size below zero");
    wide[static_cast<size_t>(i)] = static_cast<size_t>(sizes[i]);
  }
  return irecv(receive_comm, count, data, wide.data(), tags, mhandles, request);
}

}  // namespace weft::plugin
