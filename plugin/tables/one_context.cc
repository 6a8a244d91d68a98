// SPDX-License-Identifier: Apache-2.0
// The one context: made, counted on, ended.
#include "plugin/tables/one_context.h"

#include <dlfcn.h>

#include <mutex>
#include <new>

#include "plugin/comm.h"
#include "plugin/guard.h"
#include "plugin/net.h"
#include "plugin/tables/convert.h"

namespace weft::plugin::one_context {
namespace {

class One {
 public:
  // Never destroyed, as exit() may run while NCCL's threads are in here.
  static One& instance() {
    alignas(One) static std::byte storage[sizeof(One)];
    static One* const one = new (storage) One;
    return *one;
  }

  nccl::Result init(nccl::Logger logger) {
    const std::lock_guard lock(mutex_);
    logger_ = logger;
    initialized_ = true;
    pin();
    return begin();
  }

  // `call` with the context, made anew if need be; counts the comm that came of it.
  template <class Call>
  nccl::Result open(const char* name, void** comm, Call&& call) {
    const std::lock_guard lock(mutex_);
    if (comm != nullptr) *comm = nullptr;
    if (!initialized_) return refuse(name, "before init");
    if (const nccl::Result result = begin(); result != nccl::kSuccess) return result;
    const nccl::Result result = call(context_);
    open_ += comm != nullptr && *comm != nullptr;
    return result;
  }

  // accept() needs no context of ours: its listening comm names it.
  void count(void* const* comm) {
    if (forked() || comm == nullptr || *comm == nullptr) return;
    const std::lock_guard lock(mutex_);
    ++open_;
  }

  void closed(nccl::Result result) {
    if (forked() || result != nccl::kSuccess) return;  // result: it was no comm
    const std::lock_guard lock(mutex_);
    if (open_ > 0) --open_;
    if (open_ > 0 || context_ == nullptr || connecting()) return;
    finalize(context_);
    context_ = nullptr;
  }

 private:
  One() = default;

  nccl::Result begin() {
    if (context_ != nullptr) return nccl::kSuccess;
    return plugin::init(&context_, nccl::kTrafficClassUndefined, logger_);
  }

  bool connecting() const {
    auto& context = *static_cast<Context*>(context_);
    const std::lock_guard lock(context.mutex());
    return !context.connecting.empty();
  }

  void pin() {
    Dl_info here;
    if (pinned_ || ::dladdr(reinterpret_cast<void*>(&One::instance), &here) == 0) return;
    // One reference more or less: what stays is the flag.
    void* self = ::dlopen(here.dli_fname, RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE);
    if (self == nullptr) return;
    pinned_ = true;
    ::dlclose(self);
  }

  std::mutex mutex_;
  nccl::Logger logger_ = nullptr;
  void* context_ = nullptr;
  size_t open_ = 0;  // comms of all kinds
  bool initialized_ = false;
  bool pinned_ = false;
};

}  // namespace

nccl::Result init(nccl::Logger logger) noexcept {
  return guarded("init", [&] { return One::instance().init(logger); });
}

nccl::Result listen(int device, void* handle, void** listen_comm) noexcept {
  return guarded("listen", [&] {
    return One::instance().open("listen", listen_comm, [&](void* context) {
      return plugin::listen(context, device, handle, listen_comm);
    });
  });
}

nccl::Result connect_with(int traffic_class, int device, void* handle, void** send_comm) noexcept {
  return guarded("connect", [&] {
    return One::instance().open("connect", send_comm, [&](void* context) {
      return plugin::connect(context, device, handle, send_comm, traffic_class);
    });
  });
}

nccl::Result connect(int device, void* handle, void** send_comm) noexcept {
  return connect_with(nccl::kTrafficClassUndefined, device, handle, send_comm);
}

nccl::Result accept(void* listen_comm, void** receive_comm) noexcept {
  const nccl::Result result = plugin::accept(listen_comm, receive_comm);
  One::instance().count(receive_comm);
  return result;
}

nccl::Result close_send(void* send_comm) noexcept {
  const nccl::Result result = plugin::close_send(send_comm);
  One::instance().closed(result);
  return result;
}

nccl::Result close_receive(void* receive_comm) noexcept {
  const nccl::Result result = plugin::close_receive(receive_comm);
  One::instance().closed(result);
  return result;
}

nccl::Result close_listen(void* listen_comm) noexcept {
  const nccl::Result result = plugin::close_listen(listen_comm);
  One::instance().closed(result);
  return result;
}

nccl::Result connect_v7(int device, void* handle, void** send_comm,
                        nccl::DeviceHandle** device_handle) noexcept {
  no_device_handle(device_handle);
  return connect(device, handle, send_comm);
}

nccl::Result accept_v7(void* listen_comm, void** receive_comm,
                       nccl::DeviceHandle** device_handle) noexcept {
  no_device_handle(device_handle);
  return accept(listen_comm, receive_comm);
}

}  // namespace weft::plugin::one_context
