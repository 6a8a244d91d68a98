// SPDX-License-Identifier: Apache-2.0
// Strong types for time: a point on some monotonic clock, and a distance between two points.
//
// The core never reads a clock: whoever drives it hands a Time in. Both types count nanoseconds in
// 64 bits (292 years), so neither wraps, and mixing them up does not compile.
#pragma once

#include <compare>
#include <cstdint>

namespace weft {

struct Duration {
  int64_t ns = 0;

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration o) const { return {ns + o.ns}; }
  constexpr Duration operator-(Duration o) const { return {ns - o.ns}; }
  constexpr Duration operator*(int64_t k) const { return {ns * k}; }
  constexpr Duration operator/(int64_t k) const { return {ns / k}; }
  constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }
};

struct Time {
  int64_t ns = 0;

  constexpr auto operator<=>(const Time&) const = default;
  constexpr Time operator+(Duration d) const { return {ns + d.ns}; }
  constexpr Time operator-(Duration d) const { return {ns - d.ns}; }
  constexpr Duration operator-(Time o) const { return {ns - o.ns}; }

  // Later than anything that happens: the deadline of whoever waits for nothing.
  static constexpr Time never() { return {INT64_MAX}; }
};

constexpr Duration nanoseconds(int64_t n) { return {n}; }
constexpr Duration microseconds(int64_t n) { return {n * 1000}; }
constexpr Duration milliseconds(int64_t n) { return {n * 1000000}; }
constexpr Duration seconds(int64_t n) { return {n * 1000000000}; }

constexpr Time earlier(Time a, Time b) { return a < b ? a : b; }

// The unit of message layout: no segment boundary falls inside a line (design, invariant 8).
inline constexpr uint32_t kLineBytes = 128;

}  // namespace weft
