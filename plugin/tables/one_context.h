// SPDX-License-Identifier: Apache-2.0
// Versions 6 to 10 know no contexts and no finalize: NCCL calls init once a process, and the last
// close is the end. Here they get one context for all that they do.
//
// It begins with init, ends when the last comm is closed and no connect is under way, and begins
// again with the next listen or connect, for which NCCL does not call init again. Since connects
// that were abandoned get no close, threads of ours may live when NCCL unloads the plugin: so with
// the first init the plugin is pinned into the process, and dlclose leaves it there.
//
// Threading: any; one mutex for set-up calls. Closing a comm while it is in use is the caller's
// fault, as ever.
#pragma once

#include "plugin/nccl/common.h"

namespace weft::plugin::one_context {

nccl::Result init(nccl::Logger logger) noexcept;
nccl::Result listen(int device, void* handle, void** listen_comm) noexcept;
nccl::Result connect(int device, void* handle, void** send_comm) noexcept;
// `traffic_class`: nccl::kTrafficClassUndefined when nobody gave one.
nccl::Result connect_with(int traffic_class, int device, void* handle, void** send_comm) noexcept;
nccl::Result accept(void* listen_comm, void** receive_comm) noexcept;
nccl::Result close_send(void* send_comm) noexcept;
nccl::Result close_receive(void* receive_comm) noexcept;
nccl::Result close_listen(void* listen_comm) noexcept;

// From version 7 on there is a place for a device handle, which stays null.
nccl::Result connect_v7(int device, void* handle, void** send_comm,
                        nccl::DeviceHandle** device_handle) noexcept;
nccl::Result accept_v7(void* listen_comm, void** receive_comm,
                       nccl::DeviceHandle** device_handle) noexcept;

}  // namespace weft::plugin::one_context
