// SPDX-License-Identifier: Apache-2.0
//
// The plugin under test. The rest of the tool speaks one interface only, `Api`; other versions of
// the plugin's are translated into it (versions.h), as NCCL's own adapters do.
#pragma once

#include <string>

#include "plugin/nccl/net_v11.h"

namespace weft::ncclnet {

/// The version that the tool speaks.
using Api = nccl::NetV11;
using Properties = nccl::PropertiesV11;
using NetAttributes = nccl::NetAttrV11;
using DeviceHandle = nccl::DeviceHandle;
using CommConfig = nccl::CommConfigV11;

class Plugin {
 public:
  /// Loads `path` and takes version `api` ("max" or a number, checked) of its interface. Empty when
  /// it worked, else why it did not. The object stays loaded until close().
  std::string open(const std::string& path, const std::string& api);
  /// Unloads, as NCCL does after the last finalize.
  void close();

  const Api& api() const { return *api_; }
  int version() const { return version_; }

 private:
  void* library_ = nullptr;
  const Api* api_ = nullptr;
  int version_ = 0;
};

/// "ncclSystemError (2)".
std::string describe(nccl::Result result);

}  // namespace weft::ncclnet
