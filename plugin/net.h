// SPDX-License-Identifier: Apache-2.0
// The plugin itself, in its one current version: what NCCL may ask, in terms that belong to no
// version of NCCL's interface. plugin/tables turns a version's tables and structs into these calls
// and back.
//
// Contracts, whatever the version (shared by all who call): nothing here blocks on a peer or
// throws; a pointer that must not be null and is answers kInvalidArgument. "Not yet" is kSuccess
// with a null result: call again with the same arguments. After a flow has failed every call on its
// comm returns the same error at once; closing works always, and waits for nobody.
//
// Threading: as NCCL does it. Calls on different comms are concurrent; of one comm the data calls
// come from one thread at a time, registration and closing from another. isend, irecv and test take
// no lock of the plugin's and allocate nothing.
//
// Ownership: a context owns its comms, comms own their requests, so finalize frees what never
// completed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/nccl/common.h"

namespace weft::plugin {

inline constexpr char kNetName[] = "Weft";
inline constexpr int kMaxDevices = 16;  // NCCL looks at no more

// No message is larger: test() reports sizes as int, and NCCL refuses more than this below
// version 9.
inline constexpr size_t kMaxMessageBytes = size_t{1} << 30;

// What a device is. The strings live as long as the plugin is loaded.
struct Properties {
  const char* name = nullptr;
  const char* pci_path = nullptr;  // null: a device without one, like loopback
  uint64_t guid = 0;               // the same in every run
  int pointer_types = nccl::kPtrHost;
  bool registration_is_global = false;
  bool force_flush = false;
  int speed_mbps = 0;
  int port = 1;
  float latency_us = 0;  // 0: not known
  int max_comms = 0;
  int max_receives = 0;  // parts of one irecv
  size_t max_p2p_bytes = 0;
  size_t max_collective_bytes = 0;
  int max_multi_request_size = 1;
};

// A hint of what the next comms and messages are for. The masks' bits: nccl/common.h.
struct NetAttributes {
  struct Side {
    int32_t max_peers = 0;
    int32_t min_peers = 0;
    int32_t max_flows_per_peer = 0;
    int32_t min_flows_per_peer = 0;
  };
  Side send;
  Side receive;
  uint32_t operations = 0;  // masks
  uint32_t algorithms = 0;
  uint32_t protocols = 0;
};

// One communicator. `traffic_class`: nccl::kTrafficClassUndefined when nobody gave one.
nccl::Result init(void** context, int traffic_class, nccl::Logger logger) noexcept;
// Everything of the context that is left ends. A null context is one whose init failed: nothing to
// do.
nccl::Result finalize(void* context) noexcept;
// A few stores.
nccl::Result set_attributes(void* context, const NetAttributes& attributes) noexcept;

// After the first init.
nccl::Result devices(int* count) noexcept;
nccl::Result get_properties(int device, Properties* properties) noexcept;

// `handle` is kHandleBytes that may travel. connect keeps its state in the handle's unused end.
nccl::Result listen(void* context, int device, void* handle, void** listen_comm) noexcept;
// `traffic_class`: of this connection, where a version says it here; undefined: the context's.
nccl::Result connect(void* context, int device, void* handle, void** send_comm,
                     int traffic_class = nccl::kTrafficClassUndefined) noexcept;
nccl::Result accept(void* listen_comm, void** receive_comm) noexcept;
nccl::Result close_send(void* send_comm) noexcept;
nccl::Result close_receive(void* receive_comm) noexcept;
nccl::Result close_listen(void* listen_comm) noexcept;

// `comm` is a send or receive comm.
nccl::Result register_memory(void* comm, void* data, size_t size, int type,
                             void** mhandle) noexcept;
nccl::Result register_dma_buf(void* comm, void* data, size_t size, int type, uint64_t offset,
                              int fd, void** mhandle) noexcept;
nccl::Result deregister_memory(void* comm, void* mhandle) noexcept;

nccl::Result isend(void* send_comm, void* data, size_t size, int tag, void* mhandle,
                   void** request) noexcept;
// What *request holds on entry (NCCL's hint of an optional completion) does not matter to us.
nccl::Result irecv(void* receive_comm, int count, void** data, size_t* sizes, int* tags,
                   void** mhandles, void** request) noexcept;
nccl::Result iflush(void* receive_comm, int count, void** data, int* sizes, void** mhandles,
                    void** request) noexcept;
// Writes as many sizes as the request has parts; `sizes` may be null.
nccl::Result test(void* request, int* done, int* sizes) noexcept;

}  // namespace weft::plugin
