// SPDX-License-Identifier: Apache-2.0
// The calls of a network plugin, as a number (for the status board and the trace) and by name.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft::ncclnet {

enum class Call : uint8_t {
  kNone,
  kInit,
  kDevices,
  kGetProperties,
  kListen,
  kConnect,
  kAccept,
  kRegMr,
  kRegMrDmaBuf,
  kDeregMr,
  kIsend,
  kIrecv,
  kIflush,
  kTest,
  kCloseSend,
  kCloseRecv,
  kCloseListen,
  kFinalize,
  kSetNetAttr,
  kLoad,
  kUnload,
};

/// NCCL's names of them, in the order of the enum.
inline constexpr std::array<std::string_view, 21> kCallNames = {
    "nothing",   "init",        "devices",     "getProperties", "listen",     "connect", "accept",
    "regMr",     "regMrDmaBuf", "deregMr",     "isend",         "irecv",      "iflush",  "test",
    "closeSend", "closeRecv",   "closeListen", "finalize",      "setNetAttr", "dlopen",  "dlclose"};

inline std::string_view name_of(Call call) {
  const auto index = static_cast<size_t>(call);
  return index < kCallNames.size() ? kCallNames[index] : std::string_view("?");
}

}  // namespace weft::ncclnet
