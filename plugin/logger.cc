// SPDX-License-Identifier: Apache-2.0
// Levels and subsystems of NCCL for ours.
#include "plugin/logger.h"

#include <atomic>

#include "transport/system/log.h"

namespace weft::plugin {
namespace {

constinit std::atomic<nccl::Logger> logger_in_use{nullptr};

nccl::LogLevel level_for_nccl(Level level) {
  switch (level) {
    case Level::kError:
    case Level::kWarn: return nccl::kLogWarn;
    case Level::kInfo: return nccl::kLogInfo;
    case Level::kTrace: return nccl::kLogTrace;
  }
  return nccl::kLogWarn;
}

void sink(Level level, const LogSite& site, const char* text) {
  const nccl::Logger logger = logger_in_use.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  logger(level_for_nccl(level), nccl::kLogNet, site.file, site.line, "NET/Weft : %s", text);
}

}  // namespace

void use_logger(nccl::Logger logger) {
  if (logger == nullptr) return;
  logger_in_use.store(logger, std::memory_order_release);
  set_log_sink(sink);
}

void remove_logger() {
  set_log_sink(nullptr);
  logger_in_use.store(nullptr, std::memory_order_release);
}

void announce(const char* text) {
  const nccl::Logger logger = logger_in_use.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  // NCCL shows the subsystem INIT unless it is told otherwise, NET only when it is asked for.
  logger(nccl::kLogInfo, nccl::kLogInit | nccl::kLogNet, __FILE__, __LINE__, "NET/Weft : %s", text);
}

}  // namespace weft::plugin
