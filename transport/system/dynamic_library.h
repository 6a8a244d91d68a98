// SPDX-License-Identifier: Apache-2.0
//
// A shared library that is loaded at run time if it is there: libibverbs, libucp, libcuda, our DPDK
// module, and (in tools) the plugin itself.
//
// Nothing of Weft needs such a library to load, so its absence is ordinary; what is never ordinary
// is not to know why. open() therefore keeps the loader's words for every name that it tried.
// Ownership: the object owns one reference to the library and gives it back on destruction;
// pointers got from it must not be used afterwards. Threading: as dlopen(3), any thread. What may
// fail: open -> kUnavailable with the reasons; symbol -> kUnavailable, library and symbol named.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "transport/base/result.h"

namespace weft {

class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  ~DynamicLibrary() { close(); }
  DynamicLibrary(DynamicLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  // Loads the first of `names` that loads, with all its symbols bound now (what is missing shows
  // here, not in the middle of a job) and visible to nobody else.
  static Result<DynamicLibrary> open(std::span<const char* const> names);
  static Result<DynamicLibrary> open(const char* name) { return open(std::span(&name, 1)); }

  bool loaded() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }  // the name that loaded

  Result<void*> symbol(const char* name) const;

  // Looks `name` up and stores it in `function`, a pointer to function.
  template <class Function>
  Status resolve(const char* name, Function*& function) const {
    Result<void*> found = symbol(name);
    if (!found.ok()) return found.status();
    function = reinterpret_cast<Function*>(*found);
    return {};
  }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void close();

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace weft
