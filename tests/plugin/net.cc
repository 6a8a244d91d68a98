// SPDX-License-Identifier: Apache-2.0
// Loading the plugin and calling its table, with bounded waits.
#include "tests/plugin/net.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "tools/ncclnet/versions.h"

namespace weft::plugin_test {
namespace {

std::mutex library_mutex;
void* library = nullptr;
const NetV11* table = nullptr;

std::mutex log_mutex;
std::string log_text;

std::byte pattern(uint64_t seed, size_t i) {
  const uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15u + (i / 8) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::byte>((word >> (8 * (i % 8))) ^ (word >> 29));
}

}  // namespace

const NetV11& net() {
  const std::lock_guard lock(library_mutex);
  if (table == nullptr) {
    const char* chosen = std::getenv("WEFT_TEST_PLUGIN");
    const char* path = chosen != nullptr ? chosen : WEFT_TEST_DEFAULT_PLUGIN;
    library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const int version = api_version();
    if (library != nullptr) {
      const std::string symbol = "ncclNetPlugin_v" + std::to_string(version);
      const void* theirs = ::dlsym(library, symbol.c_str());
      if (theirs != nullptr) table = ncclnet::as_current(version, theirs);
    }
    if (table == nullptr) {
      std::fprintf(stderr, "cannot load version %d of the plugin: %s\n", version, ::dlerror());
      std::exit(1);
    }
  }
  return *table;
}

void unload() {
  const std::lock_guard lock(library_mutex);
  if (library != nullptr) ::dlclose(library);
  library = nullptr;
  table = nullptr;
}

int api_version() {
  static const int version = [] {
    const char* chosen = std::getenv("WEFT_TEST_API");
    return chosen != nullptr ? std::atoi(chosen) : 11;
  }();
  return version;
}

nccl::Result set_attributes(const Context& context, const nccl::NetAttrV11& attributes) {
  nccl::NetAttrV11 copy = attributes;
  if (net().set_net_attr == nullptr) return nccl::kSuccess;
  return net().set_net_attr(context.get(), &copy);
}

extern "C" void record_log(nccl::LogLevel level, unsigned long, const char*, int,
                           const char* format, ...) {
  char line[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(log_mutex);
  log_text.append(std::to_string(level)).append(": ").append(line).append("\n");
}

std::string take_log() {
  const std::lock_guard lock(log_mutex);
  return std::exchange(log_text, {});
}

bool eventually(const std::function<bool()>& ready, int milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!ready()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

Context::Context(int traffic_class) {
  nccl::CommConfigV11 config{traffic_class};
  EXPECT_EQ(net().init(&context_, 1, &config, record_log, nullptr), nccl::kSuccess) << take_log();
}

void Context::finalize() {
  if (context_ == nullptr) return;
  EXPECT_EQ(net().finalize(std::exchange(context_, nullptr)), nccl::kSuccess);
}

Buffer::Buffer(size_t bytes) : size_(bytes) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t whole = (bytes + page - 1) / page * page;
  map_bytes_ = whole + page;
  void* map =
      ::mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  map_ = static_cast<std::byte*>(map);
  ::mprotect(map_ + whole, page, PROT_NONE);
  data_ = map_ + (whole - bytes);
}

void Buffer::fill(uint64_t seed, size_t offset, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) data_[offset + i] = pattern(seed, i);
}

void Buffer::set(int value) { std::memset(data_, value, size_); }

size_t Buffer::matches(uint64_t seed, size_t offset, size_t bytes) const {
  for (size_t i = 0; i < bytes; ++i) {
    if (data_[offset + i] != pattern(seed, i)) return i;
  }
  return bytes;
}

bool Buffer::is_all(int value, size_t offset, size_t bytes) const {
  for (size_t i = 0; i < bytes; ++i) {
    if (data_[offset + i] != static_cast<std::byte>(value)) return false;
  }
  return true;
}

void Buffer::forbid() { ::mprotect(map_, map_bytes_, PROT_NONE); }

void Buffer::release() {
  if (map_ != nullptr) ::munmap(std::exchange(map_, nullptr), map_bytes_);
}

Pair::Pair(Context& sender, Context& receiver) {
  Handle handle{};
  void* listener = nullptr;
  EXPECT_EQ(net().listen(receiver.get(), 0, handle.data(), &listener), nccl::kSuccess);
  if (listener == nullptr) return;
  const bool good = eventually([&] {
    nccl::Result result = nccl::kSuccess;
    if (send_ == nullptr) {
      result = net().connect(sender.get(), 0, handle.data(), &send_, nullptr);
      EXPECT_EQ(result, nccl::kSuccess) << take_log();
    }
    if (result == nccl::kSuccess && receive_ == nullptr) {
      result = net().accept(listener, &receive_, nullptr);
      EXPECT_EQ(result, nccl::kSuccess) << take_log();
    }
    return result != nccl::kSuccess || up();
  });
  EXPECT_TRUE(good) << "connect and accept took too long\n" << take_log();
  EXPECT_EQ(net().close_listen(listener), nccl::kSuccess);
}

void Pair::close_send() {
  if (send_ != nullptr) {
    EXPECT_EQ(net().close_send(std::exchange(send_, nullptr)), nccl::kSuccess);
  }
}

void Pair::close_receive() {
  if (receive_ != nullptr) {
    EXPECT_EQ(net().close_recv(std::exchange(receive_, nullptr)), nccl::kSuccess);
  }
}

void Pair::close() {
  close_send();
  close_receive();
}

Registered::Registered(void* comm, const Buffer& buffer) : comm_(comm) {
  EXPECT_EQ(net().reg_mr(comm, buffer.data(), buffer.size(), nccl::kPtrHost, &mhandle_),
            nccl::kSuccess)
      << take_log();
}

void Registered::drop() {
  if (mhandle_ == nullptr) return;
  EXPECT_EQ(net().dereg_mr(comm_, std::exchange(mhandle_, nullptr)), nccl::kSuccess);
}

std::pair<nccl::Result, void*> try_send(void* comm, std::byte* data, size_t bytes, int tag,
                                        void* mhandle) {
  void* request = &request;  // must be overwritten
  const nccl::Result result = net().isend(comm, data, bytes, tag, mhandle, nullptr, &request);
  return {result, request};
}

std::pair<nccl::Result, void*> try_receive(void* comm, std::byte* data, size_t bytes, int tag,
                                           void* mhandle) {
  void* request = &request;
  void* buffers[1] = {data};
  const nccl::Result result =
      net().irecv(comm, 1, buffers, &bytes, &tag, &mhandle, nullptr, &request);
  return {result, request};
}

namespace {
template <class Try>
void* post(const char* what, Try&& attempt) {
  std::pair<nccl::Result, void*> answer{nccl::kSuccess, nullptr};
  const bool good = eventually([&] {
    answer = attempt();
    return answer.first != nccl::kSuccess || answer.second != nullptr;
  });
  EXPECT_TRUE(good) << what << " stays NULL\n" << take_log();
  EXPECT_EQ(answer.first, nccl::kSuccess) << what << "\n" << take_log();
  return answer.second;
}
}  // namespace

void* post_send(void* comm, std::byte* data, size_t bytes, int tag, void* mhandle) {
  return post("isend", [&] { return try_send(comm, data, bytes, tag, mhandle); });
}

void* post_receive(void* comm, std::byte* data, size_t bytes, int tag, void* mhandle) {
  return post("irecv", [&] { return try_receive(comm, data, bytes, tag, mhandle); });
}

nccl::Result wait(void* request, int* sizes) {
  if (request == nullptr) return nccl::kInvalidUsage;  // the post has failed, and said so
  nccl::Result result = nccl::kSuccess;
  int done = 0;
  const bool good = eventually([&] {
    result = net().test(request, &done, sizes);
    return result != nccl::kSuccess || done != 0;
  });
  EXPECT_TRUE(good) << "a request takes too long\n" << take_log();
  return good ? result : nccl::kTimeout;
}

nccl::Result wait_all(const std::vector<void*>& requests) {
  for (void* request : requests) {
    const nccl::Result result = wait(request);
    if (result != nccl::kSuccess) return result;
  }
  return nccl::kSuccess;
}

}  // namespace weft::plugin_test
