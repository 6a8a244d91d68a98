// SPDX-License-Identifier: Apache-2.0
//
// The one way out for words: a process-wide sink that the loader of Weft provides.
//
// In NCCL the sink is NCCL's logger, in tools stderr, and at first nothing. Lines are levelled,
// formatted only when they will be written, one line each (control characters, which may come from
// a peer or a file, are replaced) and at most kLogLineBytes long.
//   log_warn("peer {} on rail {} is silent since {} ms", name, rail, ms);
//   WEFT_WARN_LIMITED("dropped a packet of {} bytes: bad magic", n);  // a peer sets the pace
// Invariant: logging never throws, allocates nothing of its own, and never changes what happens
// next; a line that cannot be formatted is written as its bare format string.
// Threading: any thread at any time; sink and level are atomics, lines of two threads meet only
// inside the sink, which must be safe to call from any thread. A sink replaced while another thread
// is inside it is still running: whoever takes a sink away waits for his own threads first.
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "transport/base/units.h"
#include "transport/system/clock.h"

namespace weft {

enum class Level : uint8_t { kError, kWarn, kInfo, kTrace };

const char* name_of(Level level);

// Where a line was written. The strings live as long as the program (or plugin) is loaded.
struct LogSite {
  const char* file = "";
  const char* function = "";
  int line = 0;
};

// `text` ends in a null byte and holds no newline; it is gone when the sink returns.
using LogSink = void (*)(Level level, const LogSite& site, const char* text);

inline constexpr std::size_t kLogLineBytes = 1024;  // the final null byte included

void set_log_sink(LogSink sink);  // null: no output
void set_log_level(Level level);  // this and what is more urgent is written; at first kWarn
Level log_level();
void stderr_log_sink(Level level, const LogSite& site, const char* text);

namespace detail {
extern std::atomic<LogSink> log_sink;
extern std::atomic<Level> log_threshold;
void write_log(Level level, const LogSite& site, fmt::string_view format,
               fmt::format_args arguments) noexcept;

// A format string, checked against its arguments at compile time, and where it stands.
template <class... Args>
struct LogFormat {
  template <class Text,
            class = std::enable_if_t<std::is_convertible_v<const Text&, std::string_view>>>
  FMT_CONSTEVAL LogFormat(const Text& text_in,  // NOLINT: implicit on purpose
                          const char* file = __builtin_FILE(),
                          const char* function = __builtin_FUNCTION(), int line = __builtin_LINE())
      : text(text_in), site{file, function, line} {}

  fmt::format_string<Args...> text;
  LogSite site;
};
}  // namespace detail

inline bool log_enabled(Level level) {
  return level <= detail::log_threshold.load(std::memory_order_relaxed) &&
         detail::log_sink.load(std::memory_order_relaxed) != nullptr;
}

template <class... Args>
void log_at(Level level, detail::LogFormat<std::type_identity_t<Args>...> format,
            const Args&... args) noexcept {
  if (!log_enabled(level)) return;
  detail::write_log(level, format.site, fmt::string_view(format.text),
                    fmt::make_format_args(args...));
}

template <class... Args>
void log_error(detail::LogFormat<std::type_identity_t<Args>...> format,
               const Args&... args) noexcept {
  log_at<Args...>(Level::kError, format, args...);
}
template <class... Args>
void log_warn(detail::LogFormat<std::type_identity_t<Args>...> format,
              const Args&... args) noexcept {
  log_at<Args...>(Level::kWarn, format, args...);
}
template <class... Args>
void log_info(detail::LogFormat<std::type_identity_t<Args>...> format,
              const Args&... args) noexcept {
  log_at<Args...>(Level::kInfo, format, args...);
}
template <class... Args>
void log_trace(detail::LogFormat<std::type_identity_t<Args>...> format,
               const Args&... args) noexcept {
  log_at<Args...>(Level::kTrace, format, args...);
}

// Lets one line through per period and counts what it keeps back. One static object a call site.
class LogLimiter {
 public:
  constexpr explicit LogLimiter(Duration period = seconds(5)) : period_ns_(period.ns) {}

  // True at most once per period, over all threads together; `kept_back` then says how many were
  // refused since the last one let through.
  bool admit(Time now, uint64_t& kept_back) noexcept;

 private:
  const int64_t period_ns_;
  std::atomic<int64_t> next_ns_{INT64_MIN};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace weft

// A macro, since only a macro gives each call site an object of its own.
#define WEFT_LOG_LIMITED(level, ...)                                                            \
  do {                                                                                          \
    static constinit ::weft::LogLimiter weft_limiter;                                           \
    if (uint64_t weft_kept = 0;                                                                 \
        ::weft::log_enabled(level) && weft_limiter.admit(::weft::monotonic_now(), weft_kept)) { \
      ::weft::log_at(level, __VA_ARGS__);                                                       \
      if (weft_kept > 0) ::weft::log_at(level, "(and {} like the line above)", weft_kept);      \
    }                                                                                           \
  } while (false)
#define WEFT_WARN_LIMITED(...) WEFT_LOG_LIMITED(::weft::Level::kWarn, __VA_ARGS__)
#define WEFT_INFO_LIMITED(...) WEFT_LOG_LIMITED(::weft::Level::kInfo, __VA_ARGS__)
