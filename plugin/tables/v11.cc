// SPDX-License-Identifier: Apache-2.0
// Versions 11 and 12 of NCCL's interface over plugin/net.h: their functions are the same, and so
// are their tables but for the properties.
//
// Functions that a version may leave out and that we have no use for are null: getDeviceMr and
// irecvConsumed are for devices that a GPU drives, makeVDevice for merging NICs.
#include "plugin/guard.h"
#include "plugin/nccl/net_v11.h"
#include "plugin/nccl/net_v12.h"
#include "plugin/net.h"
#include "plugin/tables/convert.h"

namespace weft::plugin {
namespace {

nccl::Result init_v11(void** context, uint64_t, nccl::CommConfigV11* config, nccl::Logger logger,
                      nccl::ProfilerCallback) {
  const int undefined = nccl::kTrafficClassUndefined;
  return init(context, config != nullptr ? config->traffic_class : undefined, logger);
}

nccl::Result connect_v11(void* context, int device, void* handle, void** send_comm,
                         nccl::DeviceHandle** device_handle) {
  no_device_handle(device_handle);
  return connect(context, device, handle, send_comm);
}

nccl::Result isend_v11(void* send_comm, void* data, size_t size, int tag, void* mhandle, void*,
                       void** request) {
  return isend(send_comm, data, size, tag, mhandle, request);
}

nccl::Result irecv_v11(void* receive_comm, int count, void** data, size_t* sizes, int* tags,
                       void** mhandles, void**, void** request) {
  return irecv(receive_comm, count, data, sizes, tags, mhandles, request);
}

NetAttributes::Side side_of(const nccl::CommAttrV11& from) {
  return {from.max_concurrent_peers, from.min_concurrent_peers, from.max_flows_per_peer,
          from.min_flows_per_peer};
}

nccl::Result set_net_attr_v11(void* context, nccl::NetAttrV11* from) {
  if (from == nullptr) return refuse("setNetAttr", "no attributes");
  return set_attributes(
      context, {side_of(from->send), side_of(from->recv), from->op, from->algo, from->proto});
}

}  // namespace
}  // namespace weft::plugin

extern "C" __attribute__((visibility("default"))) const weft::nccl::NetV11 ncclNetPlugin_v11 = {
    .name = weft::plugin::kNetName,
    .init = weft::plugin::init_v11,
    .devices = weft::plugin::devices,
    .get_properties = weft::plugin::properties_as<weft::nccl::PropertiesV11>,
    .listen = weft::plugin::listen,
    .connect = weft::plugin::connect_v11,
    .accept = weft::plugin::accept_with_handle,
    .reg_mr = weft::plugin::register_memory,
    .reg_mr_dma_buf = weft::plugin::register_dma_buf,
    .dereg_mr = weft::plugin::deregister_memory,
    .isend = weft::plugin::isend_v11,
    .irecv = weft::plugin::irecv_v11,
    .iflush = weft::plugin::iflush,
    .test = weft::plugin::test,
    .close_send = weft::plugin::close_send,
    .close_recv = weft::plugin::close_receive,
    .close_listen = weft::plugin::close_listen,
    .get_device_mr = nullptr,
    .irecv_consumed = nullptr,
    .make_vdevice = nullptr,
    .finalize = weft::plugin::finalize,
    .set_net_attr = weft::plugin::set_net_attr_v11,
};

extern "C" __attribute__((visibility("default"))) const weft::nccl::NetV12 ncclNetPlugin_v12 = {
    .name = weft::plugin::kNetName,
    .init = weft::plugin::init_v11,
    .devices = weft::plugin::devices,
    .get_properties = weft::plugin::properties_as<weft::nccl::PropertiesV12>,
    .listen = weft::plugin::listen,
    .connect = weft::plugin::connect_v11,
    .accept = weft::plugin::accept_with_handle,
    .reg_mr = weft::plugin::register_memory,
    .reg_mr_dma_buf = weft::plugin::register_dma_buf,
    .dereg_mr = weft::plugin::deregister_memory,
    .isend = weft::plugin::isend_v11,
    .irecv = weft::plugin::irecv_v11,
    .iflush = weft::plugin::iflush,
    .test = weft::plugin::test,
    .close_send = weft::plugin::close_send,
    .close_recv = weft::plugin::close_receive,
    .close_listen = weft::plugin::close_listen,
    .get_device_mr = nullptr,
    .irecv_consumed = nullptr,
    .make_vdevice = nullptr,
    .finalize = weft::plugin::finalize,
    .set_net_attr = weft::plugin::set_net_attr_v11,
};
