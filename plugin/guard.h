// SPDX-License-Identifier: Apache-2.0
// The edge between our C++ and NCCL's C: no exception passes, and a Status becomes one of NCCL's codes.
//
// Every function of plugin/net.h runs its body inside guarded(). Threading: any. Nothing here fails.
#pragma once

#include <exception>
#include <new>

#include "plugin/nccl/common.h"
#include "transport/base/result.h"
#include "transport/system/log.h"

namespace weft::plugin {

constexpr nccl::Result code_of(Code code) {
  switch (code) {
    case Code::kOk: return nccl::kSuccess;
    case Code::kInvalidArgument: return nccl::kInvalidArgument;
    case Code::kSystem:
    case Code::kNoResource:
    case Code::kUnavailable: return nccl::kSystemError;
    case Code::kRemote: return nccl::kRemoteError;
    case Code::kInternal: return nccl::kInternalError;
  }
  return nccl::kInternalError;
}

// Says what went wrong, and which code NCCL gets for it.
inline nccl::Result report(const char* call, const Status& status) noexcept {
  if (status.ok()) return nccl::kSuccess;
  log_warn("{}: {}", call, status.words());
  return code_of(status.code());
}

inline nccl::Result refuse(const char* call, const char* why) noexcept {
  log_warn("{}: {}", call, why);
  return nccl::kInvalidArgument;
}

template <class Body>
nccl::Result guarded(const char* call, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    log_error("{}: out of memory", call);
    return nccl::kSystemError;
  } catch (const std::exception& error) {
    log_error("{}: {}", call, error.what());
    return nccl::kInternalError;
  } catch (...) {
    log_error("{}: an exception of unknown kind", call);
    return nccl::kInternalError;
  }
}

}  // namespace weft::plugin
