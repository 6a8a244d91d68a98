// SPDX-License-Identifier: Apache-2.0
//
// Connections of a rank, by name, for the modes that make their own traffic: one context, any
// number of flows in and out, set up as NCCL does it (listen, hand the handle over, try connect
// and accept in turn, close the listener as soon as it has accepted). One thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tools/ncclnet/rank.h"

namespace weft::ncclnet {

class Links {
 public:
  static constexpr int kUnwritten = -77777;  // a size that test has not written
  using Sizes = std::array<int, nccl::kMaxReceives + 1>;

  explicit Links(Rank& rank);

  /// Announces a flow that another rank connects out to under the same name. Returns its index.
  size_t add_in(const std::string& name);
  size_t add_out(const std::string& name);
  /// Connects all of them.
  void establish();
  void* comm_in(size_t index) const { return in_[index].comm; }
  void* comm_out(size_t index) const { return out_[index].comm; }
  const Properties& properties() const { return properties_; }

  void* register_memory(void* comm, void* data, size_t bytes);
  /// Deregisters all, closes all, finalizes.
  void close();

  /// One data call each; null when the plugin says "later".
  void* send(void* comm, void* data, size_t bytes, int tag, void* mhandle);
  void* receive(void* comm, int count, void** data, size_t* sizes, int* tags, void** mhandles);
  /// True when the request is done; then the sizes of its parts are in `sizes`. Checked here: that
  /// test wrote one size a part and no more.
  bool test_send(void* request, Sizes& sizes) { return test(request, 1, sizes, true); }
  bool test_receive(void* request, uint32_t parts, Sizes& sizes) {
    return test(request, parts, sizes, false);
  }

 private:
  struct Flow {
    std::string name;
    void* comm = nullptr;
    void* listener = nullptr;
    std::array<char, nccl::kHandleBytes> handle{};
    bool have_handle = false;
  };
  bool test(void* request, uint32_t parts, Sizes& sizes, bool sends);
  bool try_connect(Flow& flow);
  bool try_accept(Flow& flow);

  Rank& rank_;
  void* context_ = nullptr;
  Properties properties_{};
  std::vector<Flow> in_, out_;
  std::vector<std::pair<void*, void*>> registered_;  // comm, mhandle
};

}  // namespace weft::ncclnet
