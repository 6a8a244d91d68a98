// SPDX-License-Identifier: Apache-2.0
// Version 8 of NCCL's interface over plugin/net.h: no contexts, message sizes are int.
#include "plugin/nccl/net_v8.h"

#include "plugin/net.h"
#include "plugin/tables/convert.h"
#include "plugin/tables/one_context.h"

extern "C" __attribute__((visibility("default"))) const weft::nccl::NetV8 ncclNetPlugin_v8 = {
    .name = weft::plugin::kNetName,
    .init = weft::plugin::one_context::init,
    .devices = weft::plugin::devices,
    .get_properties = weft::plugin::properties_as<weft::nccl::PropertiesV8>,
    .listen = weft::plugin::one_context::listen,
    .connect = weft::plugin::one_context::connect_v7,
    .accept = weft::plugin::one_context::accept_v7,
    .reg_mr = weft::plugin::register_memory,
    .reg_mr_dma_buf = weft::plugin::register_dma_buf,
    .dereg_mr = weft::plugin::deregister_memory,
    .isend = weft::plugin::isend_int,
    .irecv = weft::plugin::irecv_int,
    .iflush = weft::plugin::iflush,
    .test = weft::plugin::test,
    .close_send = weft::plugin::one_context::close_send,
    .close_recv = weft::plugin::one_context::close_receive,
    .close_listen = weft::plugin::one_context::close_listen,
    .get_device_mr = nullptr,
    .irecv_consumed = nullptr,
};
