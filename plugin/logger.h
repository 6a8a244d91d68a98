// SPDX-License-Identifier: Apache-2.0
// NCCL's logger as the sink of transport/system/log.
//
// What is written is decided twice: by WEFT_LOG here, and by NCCL_DEBUG and NCCL_DEBUG_SUBSYS
// there. Threading: any; whoever removes the logger has joined his own threads first. Nothing
// fails.
#pragma once

#include "plugin/nccl/common.h"

namespace weft::plugin {

// Null: stay with the one that is there.
void use_logger(nccl::Logger logger);
void remove_logger();

// A line for NCCL's users whatever WEFT_LOG says: shown with NCCL_DEBUG=INFO.
void announce(const char* text);

}  // namespace weft::plugin
