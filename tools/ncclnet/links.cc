// SPDX-License-Identifier: Apache-2.0
// Connections by name; see links.h.
#include "tools/ncclnet/links.h"

#include <cstring>

#include <fmt/format.h>

namespace weft::ncclnet {
namespace {

constexpr uint64_t kCommId = 0x77656674'0000'0001u;  // the same for all ranks
constexpr int kDevice = 0;

}  // namespace

Links::Links(Rank& rank) : rank_(rank) {
  const Api& api = rank.api();
  CommConfig config{nccl::kTrafficClassUndefined};
  rank.call(Call::kInit, api.init, &context_, kCommId, &config, Rank::logger(), Rank::profiler());
  int devices = 0;
  rank.call(Call::kDevices, api.devices, &devices);
  if (devices <= 0) rank.fail(tools::kCannotRunHere, "the plugin finds no network device here");
  rank.call(Call::kGetProperties, api.get_properties, kDevice, &properties_);
}

size_t Links::add_in(const std::string& name) {
  Flow flow;
  flow.name = name;
  rank_.call(Call::kListen, rank_.api().listen, context_, kDevice,
             static_cast<void*>(flow.handle.data()), &flow.listener);
  rank_.channel().publish(name, flow.handle.data(), flow.handle.size());
  in_.push_back(flow);
  return in_.size() - 1;
}

size_t Links::add_out(const std::string& name) {
  out_.emplace_back();
  out_.back().name = name;
  return out_.size() - 1;
}

bool Links::try_connect(Flow& flow) {
  if (flow.comm != nullptr) return true;
  if (!flow.have_handle) {
    const auto handle = rank_.channel().find(flow.name);
    if (!handle || handle->size() != flow.handle.size()) return false;
    std::memcpy(flow.handle.data(), handle->data(), handle->size());
    flow.have_handle = true;
  }
  DeviceHandle* device = nullptr;
  rank_.call(Call::kConnect, rank_.api().connect, context_, kDevice,
             static_cast<void*>(flow.handle.data()), &flow.comm, &device);
  return flow.comm != nullptr;
}

bool Links::try_accept(Flow& flow) {
  if (flow.comm != nullptr) return true;
  DeviceHandle* device = nullptr;
  rank_.call(Call::kAccept, rank_.api().accept, flow.listener, &flow.comm, &device);
  if (flow.comm == nullptr) return false;
  rank_.call(Call::kCloseListen, rank_.api().close_listen, flow.listener);
  flow.listener = nullptr;
  return true;
}

void Links::establish() {
  Rank::slot().doing.store(Doing::kPolling, std::memory_order_relaxed);
  rank_.board().connections.store(in_.size() + out_.size(), std::memory_order_relaxed);
  Backoff backoff;
  for (;;) {
    size_t connected = 0;
    for (Flow& flow : out_) connected += try_connect(flow) ? 1 : 0;
    for (Flow& flow : in_) connected += try_accept(flow) ? 1 : 0;
    rank_.board().connected.store(connected, std::memory_order_relaxed);
    if (connected == in_.size() + out_.size()) break;
    backoff.pause(true);
  }
  Rank::slot().doing.store(Doing::kRunning, std::memory_order_relaxed);
}

void* Links::register_memory(void* comm, void* data, size_t bytes) {
  void* mhandle = nullptr;
  rank_.call(Call::kRegMr, rank_.api().reg_mr, comm, data, bytes, static_cast<int>(nccl::kPtrHost),
             &mhandle);
  registered_.emplace_back(comm, mhandle);
  return mhandle;
}

void Links::close() {
  const Api& api = rank_.api();
  for (const auto& [comm, mhandle] : registered_) {
    rank_.call(Call::kDeregMr, api.dereg_mr, comm, mhandle);
  }
  for (Flow& flow : out_) rank_.call(Call::kCloseSend, api.close_send, flow.comm);
  for (Flow& flow : in_) rank_.call(Call::kCloseRecv, api.close_recv, flow.comm);
  rank_.call(Call::kFinalize, api.finalize, context_);
}

void* Links::send(void* comm, void* data, size_t bytes, int tag, void* mhandle) {
  void* request = nullptr;
  rank_.data_begins();
  rank_.call(Call::kIsend, rank_.api().isend, comm, data, bytes, tag, mhandle,
             Rank::profile_handle(), &request);
  if (request != nullptr) rank_.board().sends.fetch_add(1, std::memory_order_relaxed);
  return request;
}

void* Links::receive(void* comm, int count, void** data, size_t* sizes, int* tags,
                     void** mhandles) {
  void* profiles[nccl::kMaxReceives];
  for (void*& profile : profiles) profile = Rank::profile_handle();
  void* request = nullptr;
  rank_.data_begins();
  rank_.call(Call::kIrecv, rank_.api().irecv, comm, count, data, sizes, tags, mhandles,
             static_cast<void**>(profiles), &request);
  if (request != nullptr) rank_.board().receives.fetch_add(1, std::memory_order_relaxed);
  return request;
}

bool Links::test(void* request, uint32_t parts, Sizes& sizes, bool sends) {
  sizes.fill(kUnwritten);
  int done = 0;
  rank_.call(Call::kTest, rank_.api().test, request, &done, sizes.data());
  if (done == 0) return false;
  if (sizes[parts] != kUnwritten) {
    rank_.fail(tools::kDataWrong,
               fmt::format("test wrote a size beyond the {} of the request", parts));
  }
  Board& board = rank_.board();
  (sends ? board.sends_done : board.receives_done).fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace weft::ncclnet
