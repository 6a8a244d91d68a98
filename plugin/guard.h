// SPDX-License-Identifier: Apache-2.0
// The edge between our C++ and NCCL's C: no exception passes, a Status becomes one of NCCL's codes,
// and a forked child is kept out (fork_guard.h).
//
// Every function of plugin/net.h runs its body inside guarded(), or guarded_end() if it ends
// something. Threading: any. Nothing here fails.
#pragma once

#include <exception>
#include <new>

#include "plugin/fork_guard.h"
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

inline nccl::Result refuse_child(const char* call) noexcept {
  WEFT_WARN_LIMITED(
      "{}: this process was forked from one that uses Weft, and what it inherited does not work "
      "here: fork before the first init, or execute a program",
      call);
  return nccl::kInvalidUsage;
}

template <class Body>
nccl::Result guarded(const char* call, Body&& body) noexcept {
  if (forked()) return refuse_child(call);
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

template <class Body>
nccl::Result guarded_end(const char* call, Body&& body) noexcept {
  return forked() ? nccl::kSuccess : guarded(call, static_cast<Body&&>(body));
}

}  // namespace weft::plugin
