// SPDX-License-Identifier: Apache-2.0
// The first one in, the last one out, and what is between.
#include "plugin/process.h"

#include <new>
#include <unordered_map>
#include <utility>

#include "plugin/fork_guard.h"
#include "plugin/guard.h"
#include "plugin/logger.h"
#include "transport/system/phrase.h"

namespace weft::plugin {
namespace {

std::string introduction(const Config& config, const Device& first, int count) {
  const Interface& interface = first.interface();
  std::string words = phrase(
      "version {}, fabric udp, interface {}, address {}, paths {}, segment {}, selector {}, law "
      "{}, "
      "progress {}",
      WEFT_VERSION, interface.name, interface.address_text(), config.paths(),
      first.segment_bytes(config), config.selector(), config.congestion(),
      config.text(Setting::kProgress));
  if (count > 1) words += phrase(" (the first of {} devices)", count);
  return words;
}

}  // namespace

struct Process::Active {
  explicit Active(Config config_in) : config(std::move(config_in)) {}

  const Config config;
  std::unordered_map<Context*, std::unique_ptr<Context>> contexts;
};

Process& Process::instance() {
  alignas(Process) static std::byte storage[sizeof(Process)];
  static Process* const process = new (storage) Process;
  return *process;
}

nccl::Result Process::enter(int32_t traffic_class, nccl::Logger logger, Context** out) {
  const std::lock_guard lock(mutex_);
  use_logger(logger);
  if (!active_) {
    const Status status = activate();
    if (!status.ok()) {
      const nccl::Result code = report("init", status);
      remove_logger();
      return code;
    }
  }
  auto context = std::make_unique<Context>(++last_context_, traffic_class);
  Context* plain = context.get();
  active_->contexts.emplace(plain, std::move(context));
  *out = plain;
  return nccl::kSuccess;
}

Status Process::activate() {
  Result<Config> config = load_config();
  if (!config.ok()) return config.status();
  apply_log_settings(*config);
  const Result<std::vector<Interface>> interfaces = choose_interfaces(*config);
  if (!interfaces.ok()) return interfaces.status();
  int count = 0;
  for (const Interface& interface : *interfaces) devices_[count++].become(interface, *config);
  active_ = std::make_unique<Active>(std::move(*config));
  device_count_ = count;
  watch_for_forks();
  announce(introduction(active_->config, devices_[0], count).c_str());
  return {};
}

void Process::leave(Context* context) {
  std::unique_lock lock(mutex_);
  if (!active_) return;
  const auto found = active_->contexts.find(context);
  if (found == active_->contexts.end()) {
    log_warn("finalize: the context is not one of ours, or was finalized before");
    return;
  }
  const auto ours = active_->contexts.extract(found);
  ++leaving_;
  // Peers are given a moment in there, for which nobody else should wait. Endpoints that a context
  // uses stay until it releases them. From the first line on its traffic touches no memory.
  lock.unlock();
  const auto& used = context->devices_used;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) devices_[i].endpoint()->finish_context(context->id());
  }
  lock.lock();
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) devices_[i].release(active_->config);
  }
  if (--leaving_ > 0 || !active_->contexts.empty()) return;
  active_.reset();
  remove_logger();
}

int Process::device_count() {
  const std::lock_guard lock(mutex_);
  return device_count_;
}

bool Process::properties(int device, Properties* out) {
  const std::lock_guard lock(mutex_);
  if (device < 0 || device >= device_count_) return false;
  *out = devices_[device].properties();
  return true;
}

Result<Endpoint*> Process::use(Context& context, int device) {
  const std::lock_guard lock(mutex_);
  if (!active_ || device < 0 || device >= device_count_) {
    return Status(Code::kInvalidArgument,
                  phrase("there is no device {}, only {} of them", device, device_count_));
  }
  const auto bit = static_cast<size_t>(device);
  if (context.devices_used[bit]) return devices_[bit].endpoint();
  Result<Endpoint*> endpoint = devices_[bit].acquire(device, active_->config);
  if (endpoint.ok()) context.devices_used[bit] = true;
  return endpoint;
}

}  // namespace weft::plugin
