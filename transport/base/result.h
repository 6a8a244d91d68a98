// SPDX-License-Identifier: Apache-2.0
// How set-up code reports failure: a Status, or a Result that holds a value or a Status.
//
// Nothing in Weft throws across a library boundary. A Status carries a code, which callers branch
// on, and words, which a person reads; the words name what was tried, what was seen and what would
// help. The data path does not use these types: there, full is a count and not an error.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace weft {

enum class Code : uint8_t {
  kOk = 0,
  kInvalidArgument,  // the caller (or its configuration) asked for something that makes no sense
  kSystem,           // the operating system or a device refused
  kRemote,           // the peer is gone, refused, or broke the protocol
  kNoResource,       // a bounded table or the machine is full
  kUnavailable,      // not here: a library, device or feature that is missing
  kInternal,         // a promise inside Weft was broken
};

constexpr const char* name_of(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kSystem: return "system error";
    case Code::kRemote: return "remote error";
    case Code::kNoResource: return "no resource";
    case Code::kUnavailable: return "unavailable";
    case Code::kInternal: return "internal error";
  }
  return "unknown";
}

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string words) : code_(code), words_(std::move(words)) {}

  bool ok() const { return code_ == Code::kOk; }
  explicit operator bool() const { return ok(); }
  Code code() const { return code_; }
  const std::string& words() const { return words_; }

 private:
  Code code_ = Code::kOk;
  std::string words_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : held_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Status status) : held_(std::in_place_index<1>, std::move(status)) {}  // NOLINT

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // Precondition: ok().
  T& operator*() { return *std::get_if<0>(&held_); }
  const T& operator*() const { return *std::get_if<0>(&held_); }
  T* operator->() { return std::get_if<0>(&held_); }
  const T* operator->() const { return std::get_if<0>(&held_); }
  // kOk when a value is held.
  Status status() const { return ok() ? Status() : *std::get_if<1>(&held_); }

 private:
  std::variant<T, Status> held_;
};

}  // namespace weft
