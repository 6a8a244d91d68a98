// SPDX-License-Identifier: Apache-2.0
// What the plugin keeps once a process: the configuration in force, the devices, the contexts.
//
// The first init reads the configuration and lists the devices; the last finalize ends every
// thread, closes every descriptor and gives NCCL's logger back, since the plugin may be unloaded
// next. After it another init begins anew.
//
// Threading: one mutex, taken by set-up calls only. Ownership: contexts. The object itself is never
// destroyed: exit() may run while NCCL's threads are still in here. What may fail: the first init,
// by configuration or for want of an interface; use(), when a device cannot be opened.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "plugin/comm.h"
#include "plugin/device.h"
#include "transport/base/result.h"

namespace weft::plugin {

class Process {
 public:
  static Process& instance();

  // Says itself why it fails: after that the logger may not be there any more.
  nccl::Result enter(int32_t traffic_class, nccl::Logger logger, Context** out);
  void leave(Context* context);

  // 0 before the first enter().
  int device_count();
  bool properties(int device, Properties* out);
  // The device's endpoint, open until the context leaves.
  Result<Endpoint*> use(Context& context, int device);

 private:
  struct Active;  // what exists while there are contexts

  Process() = default;
  Status activate();

  std::mutex mutex_;
  std::array<Device, kMaxDevices> devices_;
  int device_count_ = 0;
  uint64_t last_context_ = 0;
  int leaving_ = 0;  // contexts on their way out, which still hold their devices
  std::unique_ptr<Active> active_;
};

}  // namespace weft::plugin
