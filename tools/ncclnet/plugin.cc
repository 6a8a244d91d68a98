// SPDX-License-Identifier: Apache-2.0
// Loading a plugin and saying what is wrong with it; see plugin.h.
#include "tools/ncclnet/plugin.h"

#include <dlfcn.h>

#include <cstdlib>

#include <fmt/format.h>

#include "tools/ncclnet/versions.h"

namespace weft::ncclnet {
namespace {

std::string symbol_of(int version) { return fmt::format("ncclNetPlugin_v{}", version); }

std::string versions_in(void* library) {
  std::string list;
  for (int version = kOldestVersion; version <= kNewestVersion; ++version) {
    if (::dlsym(library, symbol_of(version).c_str()) == nullptr) continue;
    list += fmt::format("{}v{}", list.empty() ? "" : ", ", version);
  }
  return list;
}

int newest_in(void* library) {
  for (int version = kNewestVersion; version >= kOldestVersion; --version) {
    if (::dlsym(library, symbol_of(version).c_str()) != nullptr) return version;
  }
  return 0;
}

// The first function that NCCL would call without looking whether it is there.
const char* missing_function(const Api& api) {
  if (api.name == nullptr) return "name";
  if (api.init == nullptr) return "init";
  if (api.devices == nullptr) return "devices";
  if (api.get_properties == nullptr) return "getProperties";
  if (api.listen == nullptr) return "listen";
  if (api.connect == nullptr) return "connect";
  if (api.accept == nullptr) return "accept";
  if (api.reg_mr == nullptr) return "regMr";
  if (api.dereg_mr == nullptr) return "deregMr";
  if (api.isend == nullptr) return "isend";
  if (api.irecv == nullptr) return "irecv";
  if (api.test == nullptr) return "test";
  if (api.close_send == nullptr) return "closeSend";
  if (api.close_recv == nullptr) return "closeRecv";
  if (api.close_listen == nullptr) return "closeListen";
  if (api.finalize == nullptr) return "finalize";
  return nullptr;
}

}  // namespace

std::string Plugin::open(const std::string& path, const std::string& api) {
  // A name without a slash would be searched for in the system's folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  library_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* why = ::dlerror();
    return fmt::format("cannot load the plugin: {}", why != nullptr ? why : file);
  }
  version_ = api == "max" ? newest_in(library_) : std::atoi(api.c_str());
  const void* table = version_ > 0 ? ::dlsym(library_, symbol_of(version_).c_str()) : nullptr;
  if (table == nullptr) {
    const std::string has = versions_in(library_);
    return fmt::format("{} has no {} (--api {}); {}", path,
                       version_ > 0 ? symbol_of(version_) : "ncclNetPlugin_vN that we know", api,
                       has.empty() ? "it is no NCCL network plugin" : "it has " + has);
  }
  api_ = as_current(version_, table);
  if (const char* missing = missing_function(*api_); missing != nullptr) {
    return fmt::format("{}: {} lacks the function {}", path, symbol_of(version_), missing);
  }
  return {};
}

void Plugin::close() {
  if (library_ != nullptr) ::dlclose(library_);
  library_ = nullptr;
  api_ = nullptr;
}

std::string describe(nccl::Result result) {
  const char* name = "an unknown result";
  switch (result) {
    case nccl::kSuccess: name = "ncclSuccess"; break;
    case nccl::kUnhandledCudaError: name = "ncclUnhandledCudaError"; break;
    case nccl::kSystemError: name = "ncclSystemError"; break;
    case nccl::kInternalError: name = "ncclInternalError"; break;
    case nccl::kInvalidArgument: name = "ncclInvalidArgument"; break;
    case nccl::kInvalidUsage: name = "ncclInvalidUsage"; break;
    case nccl::kRemoteError: name = "ncclRemoteError"; break;
    case nccl::kInProgress: name = "ncclInProgress"; break;
    case nccl::kTimeout: name = "ncclTimeout"; break;
  }
  return fmt::format("{} ({})", name, static_cast<int>(result));
}

}  // namespace weft::ncclnet
