// SPDX-License-Identifier: Apache-2.0
// Progress lines; see progress.h.
#include "tools/common/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "tools/common/clock.h"

namespace weft::tools {
namespace {

constexpr int64_t kTerminalEveryNs = 200'000'000;
constexpr int64_t kPlainEveryNs = 5'000'000'000;
constexpr int kBarColumns = 24;

std::string bar(double part) {
  const int full = static_cast<int>(std::clamp(part, 0.0, 1.0) * kBarColumns);
  return fmt::format("[{:.<{}}] ", std::string(static_cast<size_t>(full), '#'), kBarColumns);
}

}  // namespace

std::string human_bytes(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes * 1e-9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes * 1e-6);
  if (bytes >= 1e3) return fmt::format("{:.1f} kB", bytes * 1e-3);
  return fmt::format("{:.0f} B", bytes);
}

Progress::Progress(std::string what, uint64_t total, bool quiet)
    : what_(std::move(what)),
      total_(total),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_ns_(now_ns()),
      drawn_ns_(start_ns_) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

void Progress::update(uint64_t bytes, const std::string& state) {
  const int64_t now = now_ns();
  if (quiet_ || now - drawn_ns_ < (terminal_ ? kTerminalEveryNs : kPlainEveryNs)) return;
  rate_ =
      static_cast<double>(bytes - std::min(bytes, drawn_bytes_)) / seconds_between(drawn_ns_, now);
  drawn_ns_ = now;
  drawn_bytes_ = bytes;
  std::string text = fmt::format("{} {}", what_, human_bytes(static_cast<double>(bytes)));
  if (total_ > 0) {
    const double part = static_cast<double>(bytes) / static_cast<double>(total_);
    text = fmt::format("{} {}{} of {} verified", what_, terminal_ ? bar(part) : "",
                       human_bytes(static_cast<double>(bytes)),
                       human_bytes(static_cast<double>(total_)));
  }
  text += fmt::format(", {}/s, {:.1f} s{}{}", human_bytes(rate_), seconds_between(start_ns_, now),
                      state.empty() ? "" : ", ", state);
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", text);
    std::fflush(stderr);
    drawn_ = true;
  } else {
    fmt::print(stderr, "{}\n", text);
  }
}

}  // namespace weft::tools
