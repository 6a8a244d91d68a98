// SPDX-License-Identifier: Apache-2.0
//
// Older and newer versions of the plugin interface, seen as the one that the tool speaks: the
// mapping that NCCL's own adapters make. Versions 6 to 10 have one init a process and no context,
// finalize or setNetAttr; below 10 no traffic class and no profiler's handles; below 9 sizes are
// int; 6 has no device handles. What a version lacks is answered here, as NCCL does without it.
//
// Threading: as the plugin's. One plugin a process: tables are kept in statics.
#pragma once

#include "plugin/nccl/net_v11.h"

namespace weft::ncclnet {

inline constexpr int kOldestVersion = 6;
inline constexpr int kNewestVersion = 12;

/// `table` is the plugin's ncclNetPlugin_v<version>, and must outlive what is returned. Null for a
/// version that is not known here.
const nccl::NetV11* as_current(int version, const void* table);

}  // namespace weft::ncclnet
