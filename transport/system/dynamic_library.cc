// SPDX-License-Identifier: Apache-2.0
// dlopen, with the reason kept when it fails.
#include "transport/system/dynamic_library.h"

#include <dlfcn.h>

namespace weft {
namespace {

// dlerror's text belongs to the calling thread and its next call overwrites it: take it at once.
std::string last_loader_error() {
  const char* words = dlerror();
  return words != nullptr ? words : "the loader gave no reason";
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(std::span<const char* const> names) {
  std::string reasons;
  for (const char* name : names) {
    dlerror();
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return DynamicLibrary(handle, name);
    }
    if (!reasons.empty()) reasons += "; ";
    reasons += last_loader_error();
  }
  if (reasons.empty()) reasons = "no library name was given";
  return Status(Code::kUnavailable, std::move(reasons));
}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  if (this != &other) {
    close();
    handle_ = std::exchange(other.handle_, nullptr);
    name_ = std::move(other.name_);
  }
  return *this;
}

Result<void*> DynamicLibrary::symbol(const char* name) const {
  if (handle_ == nullptr) {
    return Status(Code::kUnavailable, std::string("no library is loaded to look up ") + name);
  }
  dlerror();
  void* address = dlsym(handle_, name);
  // A symbol may exist and be null (an ifunc, a weak one); nothing of use to us, so refused too.
  if (address == nullptr) {
    return Status(Code::kUnavailable, name_ + " lacks " + name + ": " + last_loader_error());
  }
  return address;
}

void DynamicLibrary::close() {
  if (handle_ != nullptr) dlclose(std::exchange(handle_, nullptr));
}

}  // namespace weft
