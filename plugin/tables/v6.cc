// SPDX-License-Identifier: Apache-2.0
// Version 6 of NCCL's interface over plugin/net.h: no contexts, no device handles, sizes are int.
#include "plugin/nccl/net_v6.h"

#include "plugin/net.h"
#include "plugin/tables/convert.h"
#include "plugin/tables/one_context.h"

extern "C" __attribute__((visibility("default"))) const weft::nccl::NetV6 ncclNetPlugin_v6 = {
    .name = weft::plugin::kNetName,
    .init = weft::plugin::one_context::init,
    .devices = weft::plugin::devices,
    .get_properties = weft::plugin::properties_as<weft::nccl::PropertiesV6>,
    .listen = weft::plugin::one_context::listen,
    .connect = weft::plugin::one_context::connect,
    .accept = weft::plugin::one_context::accept,
    .reg_mr = weft::plugin::register_int,
    .reg_mr_dma_buf = weft::plugin::register_dma_buf,
    .dereg_mr = weft::plugin::deregister_memory,
    .isend = weft::plugin::isend_int,
    .irecv = weft::plugin::irecv_int,
    .iflush = weft::plugin::iflush,
    .test = weft::plugin::test,
    .close_send = weft::plugin::one_context::close_send,
    .close_recv = weft::plugin::one_context::close_receive,
    .close_listen = weft::plugin::one_context::close_listen,
};
