// SPDX-License-Identifier: Apache-2.0
// Version 10 of NCCL's interface over plugin/net.h: no contexts, but a traffic class for each
// connect.
#include "plugin/nccl/net_v10.h"

#include "plugin/net.h"
#include "plugin/tables/convert.h"
#include "plugin/tables/one_context.h"

namespace weft::plugin {
namespace {

nccl::Result init_v10(nccl::Logger logger, nccl::ProfilerCallback) {
  return one_context::init(logger);
}

nccl::Result connect_v10(int device, nccl::CommConfigV10* config, void* handle, void** send_comm,
                         nccl::DeviceHandle** device_handle) {
  no_device_handle(device_handle);
  const int undefined = nccl::kTrafficClassUndefined;
  return one_context::connect_with(config != nullptr ? config->traffic_class : undefined, device,
                                   handle, send_comm);
}

nccl::Result isend_v10(void* send_comm, void* data, size_t size, int tag, void* mhandle, void*,
                       void** request) {
  return isend(send_comm, data, size, tag, mhandle, request);
}

nccl::Result irecv_v10(void* receive_comm, int count, void** data, size_t* sizes, int* tags,
                       void** mhandles, void**, void** request) {
  return irecv(receive_comm, count, data, sizes, tags, mhandles, request);
}

}  // namespace
}  // namespace weft::plugin

extern "C" __attribute__((visibility("default"))) const weft::nccl::NetV10 ncclNetPlugin_v10 = {
    .name = weft::plugin::kNetName,
    .init = weft::plugin::init_v10,
    .devices = weft::plugin::devices,
    .get_properties = weft::plugin::properties_as<weft::nccl::PropertiesV10>,
    .listen = weft::plugin::one_context::listen,
    .connect = weft::plugin::connect_v10,
    .accept = weft::plugin::one_context::accept_v7,
    .reg_mr = weft::plugin::register_memory,
    .reg_mr_dma_buf = weft::plugin::register_dma_buf,
    .dereg_mr = weft::plugin::deregister_memory,
    .isend = weft::plugin::isend_v10,
    .irecv = weft::plugin::irecv_v10,
    .iflush = weft::plugin::iflush,
    .test = weft::plugin::test,
    .close_send = weft::plugin::one_context::close_send,
    .close_recv = weft::plugin::one_context::close_receive,
    .close_listen = weft::plugin::one_context::close_listen,
    .get_device_mr = nullptr,
    .irecv_consumed = nullptr,
    .make_vdevice = nullptr,
};
