// SPDX-License-Identifier: Apache-2.0
// One template for versions 6 to 10, one function for 12; see versions.h.
#include "tools/ncclnet/versions.h"

#include <array>
#include <climits>

#include "plugin/nccl/net_v10.h"
#include "plugin/nccl/net_v12.h"
#include "plugin/nccl/net_v6.h"
#include "plugin/nccl/net_v7.h"
#include "plugin/nccl/net_v8.h"
#include "plugin/nccl/net_v9.h"

namespace weft::ncclnet {
namespace {

using nccl::DeviceHandle;
using nccl::Result;

// What NCCL takes where a version does not say.
constexpr size_t kLargestBelowVersion9 = size_t{1} << 30;

template <class P>
void convert(const P& from, int device, nccl::PropertiesV11* to) {
  *to = {};
  to->name = from.name;
  to->pci_path = from.pci_path;
  to->guid = from.guid;
  to->ptr_support = from.ptr_support;
  to->speed_mbps = from.speed_mbps;
  to->port = from.port;
  to->latency_us = from.latency_us;
  to->max_comms = from.max_comms;
  to->max_recvs = from.max_recvs;
  to->max_multi_request_size = 1;
  to->vdevice.count = 1;
  to->vdevice.devices[0] = device;
  to->max_p2p_bytes = to->max_coll_bytes = kLargestBelowVersion9;
  if constexpr (requires { from.device_type; }) {
    to->device_type = from.device_type;
    to->device_version = from.device_version;
  }
  if constexpr (requires { from.reg_is_global; }) to->reg_is_global = from.reg_is_global;
  if constexpr (requires { from.vdevice; }) {
    to->force_flush = from.force_flush;
    to->max_p2p_bytes = from.max_p2p_bytes;
    to->max_coll_bytes = from.max_coll_bytes;
    to->vdevice.count = from.vdevice.count;
    for (int i = 0; i < from.vdevice.count && i < nccl::kMaxVDeviceV11; ++i) {
      to->vdevice.devices[i] = from.vdevice.devices[i];
    }
  }
}

template <int kVersion, class Net, class Properties>
struct Older {
  static inline const Net* net = nullptr;
  static inline bool initialized = false;
  struct Context {
    int traffic_class = nccl::kTrafficClassUndefined;
  };

  static Result init(void** context, uint64_t, nccl::CommConfigV11* config, nccl::Logger logger,
                     nccl::ProfilerCallback profiler) {
    if (context == nullptr) return nccl::kInvalidArgument;
    *context = nullptr;
    if (!initialized) {
      Result result;
      if constexpr (kVersion >= 10) {
        result = net->init(logger, profiler);
      } else {
        (void)profiler;
        result = net->init(logger);
      }
      if (result != nccl::kSuccess) return result;
      initialized = true;
    }
    auto* made = new Context;
    if (config != nullptr) made->traffic_class = config->traffic_class;
    *context = made;
    return nccl::kSuccess;
  }

  static Result finalize(void* context) {
    delete static_cast<Context*>(context);
    return nccl::kSuccess;
  }

  static Result get_properties(int device, nccl::PropertiesV11* to) {
    if (to == nullptr) return net->get_properties(device, nullptr);
    Properties from{};
    const Result result = net->get_properties(device, &from);
    if (result == nccl::kSuccess) convert(from, device, to);
    return result;
  }

  static Result listen(void*, int device, void* handle, void** listen_comm) {
    return net->listen(device, handle, listen_comm);
  }

  static Result connect(void* context, int device, void* handle, void** send_comm,
                        DeviceHandle** device_handle) {
    if constexpr (kVersion >= 10) {
      if (context == nullptr) return nccl::kInvalidArgument;
      nccl::CommConfigV10 config{static_cast<Context*>(context)->traffic_class};
      return net->connect(device, &config, handle, send_comm, device_handle);
    } else if constexpr (kVersion >= 7) {
      return net->connect(device, handle, send_comm, device_handle);
    } else {
      if (device_handle != nullptr) *device_handle = nullptr;
      return net->connect(device, handle, send_comm);
    }
  }

  static Result accept(void* listen_comm, void** recv_comm, DeviceHandle** device_handle) {
    if constexpr (kVersion >= 7) {
      return net->accept(listen_comm, recv_comm, device_handle);
    } else {
      if (device_handle != nullptr) *device_handle = nullptr;
      return net->accept(listen_comm, recv_comm);
    }
  }

  static Result reg_mr(void* comm, void* data, size_t size, int type, void** mhandle) {
    if constexpr (kVersion >= 8) {
      return net->reg_mr(comm, data, size, type, mhandle);
    } else {
      if (size > INT_MAX) return nccl::kInternalError;
      return net->reg_mr(comm, data, static_cast<int>(size), type, mhandle);
    }
  }

  static Result isend(void* comm, void* data, size_t size, int tag, void* mhandle, void* profile,
                      void** request) {
    if constexpr (kVersion >= 10) {
      return net->isend(comm, data, size, tag, mhandle, profile, request);
    } else if constexpr (kVersion >= 9) {
      return net->isend(comm, data, size, tag, mhandle, request);
    } else {
      if (size > kLargestBelowVersion9) return nccl::kInternalError;
      return net->isend(comm, data, static_cast<int>(size), tag, mhandle, request);
    }
  }

  // A receive may be posted larger than what comes: so larger than int may be cut down.
  static Result irecv(void* comm, int count, void** data, size_t* sizes, int* tags, void** mhandles,
                      void** profiles, void** request) {
    if constexpr (kVersion >= 10) {
      return net->irecv(comm, count, data, sizes, tags, mhandles, profiles, request);
    } else if constexpr (kVersion >= 9) {
      return net->irecv(comm, count, data, sizes, tags, mhandles, request);
    } else {
      std::array<int, 2 * nccl::kMaxReceives> narrow{};  // too many are the plugin's to refuse
      if (count > static_cast<int>(narrow.size())) return nccl::kInternalError;
      for (int i = 0; i < count; ++i) {
        narrow[static_cast<size_t>(i)] =
            static_cast<int>(sizes[i] < kLargestBelowVersion9 ? sizes[i] : kLargestBelowVersion9);
      }
      return net->irecv(comm, count, data, narrow.data(), tags, mhandles, request);
    }
  }

  static const nccl::NetV11* take(const void* table) {
    net = static_cast<const Net*>(table);
    initialized = false;
    static nccl::NetV11 current;
    current = {};
    current.name = net->name;
    current.devices = net->devices;
    current.reg_mr_dma_buf = net->reg_mr_dma_buf;
    current.dereg_mr = net->dereg_mr;
    current.iflush = net->iflush;
    current.test = net->test;
    current.close_send = net->close_send;
    current.close_recv = net->close_recv;
    current.close_listen = net->close_listen;
    current.finalize = finalize;
    // What is missing in the plugin stays missing.
    if (net->init != nullptr) current.init = init;
    if (net->get_properties != nullptr) current.get_properties = get_properties;
    if (net->listen != nullptr) current.listen = listen;
    if (net->connect != nullptr) current.connect = connect;
    if (net->accept != nullptr) current.accept = accept;
    if (net->reg_mr != nullptr) current.reg_mr = reg_mr;
    if (net->isend != nullptr) current.isend = isend;
    if (net->irecv != nullptr) current.irecv = irecv;
    return &current;
  }
};

const nccl::NetV12* newer = nullptr;

Result newer_properties(int device, nccl::PropertiesV11* to) {
  if (to == nullptr) return newer->get_properties(device, nullptr);
  nccl::PropertiesV12 from{};
  const Result result = newer->get_properties(device, &from);
  if (result != nccl::kSuccess) return result;
  convert(from, device, to);
  to->max_multi_request_size = from.max_multi_request_size;
  return result;
}

const nccl::NetV11* take_newer(const void* table) {
  newer = static_cast<const nccl::NetV12*>(table);
  static nccl::NetV11 current;
  current = {newer->name,           newer->init,          newer->devices,        nullptr,
             newer->listen,         newer->connect,       newer->accept,         newer->reg_mr,
             newer->reg_mr_dma_buf, newer->dereg_mr,      newer->isend,          newer->irecv,
             newer->iflush,         newer->test,          newer->close_send,     newer->close_recv,
             newer->close_listen,   newer->get_device_mr, newer->irecv_consumed, nullptr,
             newer->finalize,       newer->set_net_attr};
  if (newer->get_properties != nullptr) current.get_properties = newer_properties;
  return &current;
}

}  // namespace

const nccl::NetV11* as_current(int version, const void* table) {
  switch (version) {
    case 6: return Older<6, nccl::NetV6, nccl::PropertiesV6>::take(table);
    case 7: return Older<7, nccl::NetV7, nccl::PropertiesV7>::take(table);
    case 8: return Older<8, nccl::NetV8, nccl::PropertiesV8>::take(table);
    case 9: return Older<9, nccl::NetV9, nccl::PropertiesV9>::take(table);
    case 10: return Older<10, nccl::NetV10, nccl::PropertiesV10>::take(table);
    case 11: return static_cast<const nccl::NetV11*>(table);
    case 12: return take_newer(table);
    default: return nullptr;
  }
}

}  // namespace weft::ncclnet
