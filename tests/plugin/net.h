// SPDX-License-Identifier: Apache-2.0
//
// The built plugin as NCCL sees it: loaded by dlopen, driven through its C table and by nothing
// else. WEFT_TEST_API (6 to 12; 11 unless set) says through which version's table; tests speak
// version 11, and tools/ncclnet/versions.h translates as NCCL's adapters do.
//
// Everything that polls does so for a bounded time and fails the test with words when it is over.
// All helpers may be used from several threads at once, each object by one.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/nccl/net_v11.h"

namespace weft::plugin_test {

using nccl::NetV11;

using Handle = std::array<std::byte, nccl::kHandleBytes>;

class Context;

// The table. Loads the plugin at first (its path: WEFT_TEST_PLUGIN, else where the build put it).
const NetV11& net();
// Unloads it; net() loads it again.
void unload();
int api_version();
// Versions 6 to 10 have neither contexts nor finalize nor setNetAttr: all communicators are one to
// the plugin, which begins with the first comm and ends with the last one's close.
inline bool has_contexts() { return api_version() >= 11; }
#define WEFT_NEEDS_CONTEXTS() \
  if (!has_contexts()) GTEST_SKIP() << "version " << api_version() << " has no contexts"
// Below version 11 nobody is asked, and nothing fails.
nccl::Result set_attributes(const Context& context, const nccl::NetAttrV11& attributes);

// What the plugin has logged since the last call.
std::string take_log();
extern "C" void record_log(nccl::LogLevel level, unsigned long flags, const char* file, int line,
                           const char* format, ...);

// Until `ready` says so, or the time is over.
bool eventually(const std::function<bool()>& ready, int milliseconds = 30000);

// A communicator.
class Context {
 public:
  explicit Context(int traffic_class = nccl::kTrafficClassUndefined);
  ~Context() { finalize(); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  void finalize();
  void* get() const { return context_; }

 private:
  void* context_ = nullptr;
};

// Pages of memory that end at a page nobody may touch.
class Buffer {
 public:
  explicit Buffer(size_t bytes);
  ~Buffer() { release(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // Byte i of message `seed`.
  void fill(uint64_t seed) { fill(seed, 0, size_); }
  void fill(uint64_t seed, size_t offset, size_t bytes);
  void set(int value);
  // The first place in [offset, offset + bytes) where message `seed` is not; bytes if it is there.
  size_t matches(uint64_t seed, size_t offset, size_t bytes) const;
  bool is_all(int value, size_t offset, size_t bytes) const;
  // Any later access, ours or the plugin's, is a fault.
  void forbid();
  void release();

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::byte* map_ = nullptr;
  size_t map_bytes_ = 0;
};

// A connection in one direction, both ends here.
class Pair {
 public:
  // One thread alone listens, connects and accepts.
  Pair(Context& sender, Context& receiver);
  ~Pair() { close(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  void close();
  void close_send();
  void close_receive();
  void forget() { send_ = receive_ = nullptr; }  // their contexts have ended them

  void* send() const { return send_; }
  void* receive() const { return receive_; }
  bool up() const { return send_ != nullptr && receive_ != nullptr; }

 private:
  void* send_ = nullptr;
  void* receive_ = nullptr;
};

// A registration of a whole buffer.
class Registered {
 public:
  Registered(void* comm, const Buffer& buffer);
  ~Registered() { drop(); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  void drop();
  void* get() const { return mhandle_; }

 private:
  void* comm_;
  void* mhandle_ = nullptr;
};

// One try each. The request is null when there is none.
std::pair<nccl::Result, void*> try_send(void* comm, std::byte* data, size_t bytes, int tag,
                                        void* mhandle);
std::pair<nccl::Result, void*> try_receive(void* comm, std::byte* data, size_t bytes, int tag,
                                           void* mhandle);
// As often as it takes; null (and a failed test) when it takes too long or fails.
void* post_send(void* comm, std::byte* data, size_t bytes, int tag, void* mhandle);
void* post_receive(void* comm, std::byte* data, size_t bytes, int tag, void* mhandle);
// Until it is done. Another result than kSuccess ends it, and is returned.
nccl::Result wait(void* request, int* sizes = nullptr);
nccl::Result wait_all(const std::vector<void*>& requests);

}  // namespace weft::plugin_test
