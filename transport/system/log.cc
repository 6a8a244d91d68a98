// SPDX-License-Identifier: Apache-2.0
// Levels, the sink, and lines bounded in length and in rate.
#include "transport/system/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace weft {
namespace detail {

constinit std::atomic<LogSink> log_sink{nullptr};
constinit std::atomic<Level> log_threshold{Level::kWarn};

void write_log(Level level, const LogSite& site, fmt::string_view format,
               fmt::format_args arguments) noexcept {
  const LogSink sink = log_sink.load(std::memory_order_acquire);
  if (sink == nullptr) return;

  std::array<char, kLogLineBytes> line;
  constexpr std::size_t kRoom = kLogLineBytes - 1;
  std::size_t wanted = 0;
  try {
    wanted = fmt::vformat_to_n(line.data(), kRoom, format, arguments).size;
  } catch (...) {
    // Better the words without their values than silence.
    wanted = format.size();
    std::copy_n(format.data(), std::min(wanted, kRoom), line.data());
  }
  const std::size_t length = std::min(wanted, kRoom);
  if (wanted > kRoom) std::memcpy(line.data() + kRoom - 3, "...", 3);
  for (std::size_t i = 0; i < length; ++i) {
    const auto c = static_cast<unsigned char>(line[i]);
    if (c < 0x20 || c == 0x7f) line[i] = '?';
  }
  line[length] = '\0';

  try {
    sink(level, site, line.data());
  } catch (...) {
    // The sink is the caller's; what it throws has no place in a data path.
  }
}

}  // namespace detail

const char* name_of(Level level) {
  switch (level) {
    case Level::kError: return "error";
    case Level::kWarn: return "warn";
    case Level::kInfo: return "info";
    case Level::kTrace: return "trace";
  }
  return "unknown";
}

void set_log_sink(LogSink sink) { detail::log_sink.store(sink, std::memory_order_release); }

void set_log_level(Level level) { detail::log_threshold.store(level, std::memory_order_relaxed); }

Level log_level() { return detail::log_threshold.load(std::memory_order_relaxed); }

void stderr_log_sink(Level level, const LogSite& site, const char* text) {
  const char* slash = std::strrchr(site.file, '/');
  // One call, so that the lines of several threads do not mix.
  std::fprintf(stderr, "weft %s: %s (%s:%d)\n", name_of(level), text,
               slash != nullptr ? slash + 1 : site.file, site.line);
}

bool LogLimiter::admit(Time now, uint64_t& kept_back) noexcept {
  int64_t next = next_ns_.load(std::memory_order_relaxed);
  // Of several threads that see the period over, the one that moves it on writes.
  if (now.ns < next ||
      !next_ns_.compare_exchange_strong(next, now.ns + period_ns_, std::memory_order_relaxed)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  kept_back = refused_.exchange(0, std::memory_order_relaxed);
  return true;
}

}  // namespace weft
