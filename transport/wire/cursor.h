// SPDX-License-Identifier: Apache-2.0
// Bounded reading and writing of little-endian integers.
//
// Neither cursor ever touches a byte outside its span: a read or write that does not fit sets
// failed(), changes nothing and yields zero, so a decoder checks once at its end. Allocation free.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace weft::wire {

static_assert(std::endian::native == std::endian::little, "byte order: add swaps before porting");

class Writer {
 public:
  explicit Writer(std::span<std::byte> room) : room_(room) {}

  template <class T>
  void put(std::type_identity_t<T> value) {
    static_assert(std::is_integral_v<T>);
    if (!reserve(sizeof(T))) return;
    std::memcpy(room_.data() + at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  void put_bytes(std::span<const std::byte> bytes) {
    if (!reserve(bytes.size())) return;
    if (!bytes.empty()) std::memcpy(room_.data() + at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  // Overwrites what was put before, at an offset below size().
  template <class T>
  void patch(size_t offset, std::type_identity_t<T> value) {
    if (offset + sizeof(T) <= at_) std::memcpy(room_.data() + offset, &value, sizeof(T));
  }

  size_t size() const { return at_; }
  size_t left() const { return room_.size() - at_; }
  bool failed() const { return failed_; }
  // Back to an earlier size(), forgetting what was put since and whether it failed.
  void rewind(size_t size) {
    at_ = size;
    failed_ = false;
  }

 private:
  bool reserve(size_t bytes) {
    if (bytes > left()) failed_ = true;
    return !failed_;
  }

  std::span<std::byte> room_;
  size_t at_ = 0;
  bool failed_ = false;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    static_assert(std::is_integral_v<T>);
    T value{};
    if (sizeof(T) > left()) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::span<const std::byte> get_bytes(size_t count) {
    if (count > left()) {
      failed_ = true;
      return {};
    }
    auto out = bytes_.subspan(at_, count);
    at_ += count;
    return out;
  }
  void skip(size_t count) { (void)get_bytes(count); }

  size_t left() const { return failed_ ? 0 : bytes_.size() - at_; }
  bool failed() const { return failed_; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace weft::wire
