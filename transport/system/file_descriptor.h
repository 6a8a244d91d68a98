// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that closes itself.
//
// Invariant: get() is either -1 or a descriptor that this object alone will close. Move-only.
// Threading: none of its own; as safe as an int. What may fail: nothing; the result of close(2) is
// dropped, since on Linux the descriptor is gone whatever it says, and a second close could hit a
// descriptor that another thread has just been given.
#pragma once

#include <unistd.h>

#include <utility>

namespace weft {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { reset(); }

  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  explicit operator bool() const { return valid(); }

  // Gives the descriptor up to the caller, who closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  void reset(int fd = -1) {
    const int old = std::exchange(fd_, fd);
    if (old >= 0) ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace weft
