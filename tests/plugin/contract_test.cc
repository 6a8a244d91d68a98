// SPDX-License-Identifier: Apache-2.0
// What the table promises before any data moves: devices, arguments, handles, words.
#include <cstdlib>
#include <cstring>

#include "tests/plugin/net.h"

namespace weft::plugin_test {
namespace {

class PluginContract : public testing::Test {
 protected:
  void SetUp() override { take_log(); }
};

TEST_F(PluginContract, NamesItselfAndLeavesOutWhatItHasNoUseFor) {
  EXPECT_STREQ(net().name, "Weft");
  EXPECT_EQ(net().get_device_mr, nullptr);
  EXPECT_EQ(net().irecv_consumed, nullptr);
  EXPECT_EQ(net().make_vdevice, nullptr);
}

TEST_F(PluginContract, DescribesItsDevicesWithinNcclsLimits) {
  Context context;
  int count = 0;
  ASSERT_EQ(net().devices(&count), nccl::kSuccess);
  ASSERT_GE(count, 1);
  for (int i = 0; i < count; ++i) {
    nccl::PropertiesV11 p{};
    ASSERT_EQ(net().get_properties(i, &p), nccl::kSuccess);
    ASSERT_NE(p.name, nullptr);
    EXPECT_EQ(std::string(p.name).rfind("weft_", 0), 0u) << p.name;
    EXPECT_EQ(p.ptr_support, nccl::kPtrHost);
    EXPECT_EQ(p.reg_is_global, 0);
    EXPECT_GT(p.speed_mbps, 0);
    EXPECT_EQ(p.port, 1);
    EXPECT_EQ(p.max_recvs, nccl::kMaxReceives);
    EXPECT_GT(p.max_comms, 1000);
    EXPECT_EQ(p.device_type, nccl::kDeviceHost);
    EXPECT_EQ(p.vdevice.count, 1);
    EXPECT_EQ(p.vdevice.devices[0], i);
    EXPECT_GT(p.max_p2p_bytes, 0u);
    EXPECT_LE(p.max_p2p_bytes, WEFT_NCCL_MAX_NET_BYTES);
    EXPECT_GT(p.max_coll_bytes, 0u);
    EXPECT_LE(p.max_coll_bytes, WEFT_NCCL_MAX_NET_BYTES);
    EXPECT_EQ(p.max_multi_request_size, 1);
    nccl::PropertiesV11 again{};
    ASSERT_EQ(net().get_properties(i, &again), nccl::kSuccess);
    EXPECT_EQ(again.guid, p.guid);
  }
  nccl::PropertiesV11 p{};
  EXPECT_EQ(net().get_properties(count, &p), nccl::kInvalidArgument);
  EXPECT_EQ(net().get_properties(-1, &p), nccl::kInvalidArgument);
}

TEST_F(PluginContract, SaysOnceWhatItIs) {
  WEFT_NEEDS_CONTEXTS();
  Context first;
  const std::string log = take_log();
  for (const char* word : {"version", "fabric udp", "interface lo", "127.0.0.1", "paths", "segment",
                           "selector", "law", "progress"}) {
    EXPECT_NE(log.find(word), std::string::npos) << word << " is missing in: " << log;
  }
  Context second;
  EXPECT_EQ(take_log(), "");
}

TEST_F(PluginContract, RefusesNullPointers) {
  Context context;
  Handle handle{};
  void* out = nullptr;
  EXPECT_EQ(net().init(nullptr, 1, nullptr, nullptr, nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().devices(nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().get_properties(0, nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().listen(context.get(), 0, nullptr, &out), nccl::kInvalidArgument);
  EXPECT_EQ(net().listen(context.get(), 0, handle.data(), nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().connect(context.get(), 0, nullptr, &out, nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().connect(context.get(), 0, handle.data(), nullptr, nullptr),
            nccl::kInvalidArgument);
  EXPECT_EQ(net().accept(nullptr, &out, nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().reg_mr(nullptr, handle.data(), 1, nccl::kPtrHost, &out), nccl::kInvalidArgument);
  EXPECT_EQ(net().dereg_mr(nullptr, nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().isend(nullptr, handle.data(), 1, 0, nullptr, nullptr, &out),
            nccl::kInvalidArgument);
  EXPECT_EQ(net().irecv(nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr, &out),
            nccl::kInvalidArgument);
  EXPECT_EQ(net().iflush(nullptr, 0, nullptr, nullptr, nullptr, &out), nccl::kInvalidArgument);
  int done = 0;
  EXPECT_EQ(net().test(nullptr, &done, nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().close_send(nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().close_recv(nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().close_listen(nullptr), nccl::kInvalidArgument);
  if (has_contexts()) {
    EXPECT_EQ(net().listen(nullptr, 0, handle.data(), &out), nccl::kInvalidArgument);
    EXPECT_EQ(net().connect(nullptr, 0, handle.data(), &out, nullptr), nccl::kInvalidArgument);
    EXPECT_EQ(net().set_net_attr(nullptr, nullptr), nccl::kInvalidArgument);
    EXPECT_EQ(net().set_net_attr(context.get(), nullptr), nccl::kInvalidArgument);
  }
  EXPECT_EQ(net().finalize(nullptr), nccl::kSuccess);  // NCCL does, when init has failed
}

TEST_F(PluginContract, RefusesTheWrongKindOfComm) {
  Context context;
  Pair pair(context, context);
  ASSERT_TRUE(pair.up());
  Buffer buffer(4096);
  Registered mine(pair.send(), buffer);
  EXPECT_EQ(try_send(pair.receive(), buffer.data(), 1, 0, mine.get()).first,
            nccl::kInvalidArgument);
  EXPECT_EQ(try_receive(pair.send(), buffer.data(), 1, 0, mine.get()).first,
            nccl::kInvalidArgument);
  EXPECT_EQ(net().close_recv(pair.send()), nccl::kInvalidArgument);
  EXPECT_EQ(net().close_listen(pair.send()), nccl::kInvalidArgument);
}

TEST_F(PluginContract, RefusesMemoryItCannotReach) {
  Context context;
  Pair pair(context, context);
  ASSERT_TRUE(pair.up());
  Buffer buffer(4096);
  void* mhandle = &buffer;
  EXPECT_EQ(net().reg_mr(pair.send(), buffer.data(), 4096, nccl::kPtrCuda, &mhandle),
            nccl::kInvalidArgument);
  EXPECT_EQ(mhandle, nullptr);
  EXPECT_EQ(net().reg_mr_dma_buf(pair.send(), buffer.data(), 4096, nccl::kPtrCuda, 0, 0, &mhandle),
            nccl::kInvalidArgument);
  EXPECT_EQ(net().reg_mr(pair.send(), buffer.data(), 0, nccl::kPtrHost, &mhandle),
            nccl::kInvalidArgument);
  const std::string log = take_log();
  EXPECT_NE(log.find("host memory"), std::string::npos) << log;
  EXPECT_NE(log.find("DMA-BUF"), std::string::npos) << log;
}

TEST_F(PluginContract, TakesNoDataOutsideItsRegistration) {
  Context context;
  Pair pair(context, context);
  ASSERT_TRUE(pair.up());
  Buffer buffer(8192), other(4096);
  Registered send(pair.send(), buffer), receive(pair.receive(), buffer);
  EXPECT_EQ(try_send(pair.send(), buffer.data() + 1, 8192, 0, send.get()).first,
            nccl::kInvalidArgument);
  EXPECT_EQ(try_send(pair.send(), other.data(), 8, 0, send.get()).first, nccl::kInvalidArgument);
  EXPECT_EQ(try_send(pair.send(), buffer.data(), 8, 0, nullptr).first, nccl::kInvalidArgument);
  EXPECT_EQ(try_send(pair.send(), nullptr, 8, 0, send.get()).first, nccl::kInvalidArgument);
  if (api_version() >= 9) {  // below, sizes are int
    EXPECT_EQ(try_send(pair.send(), buffer.data(), size_t{1} << 40, 0, send.get()).first,
              nccl::kInvalidArgument);
  }
  EXPECT_EQ(try_receive(pair.receive(), buffer.data() - 1, 8, 0, receive.get()).first,
            nccl::kInvalidArgument);
  EXPECT_EQ(try_receive(pair.receive(), buffer.data(), SIZE_MAX, 0, receive.get()).first,
            nccl::kInvalidArgument);
}

TEST_F(PluginContract, RefusesHandlesThatNobodyMade) {
  Context context;
  void* comm = nullptr;
  Handle zeros{}, noise;
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::byte>(i * 37 + 11);
  EXPECT_EQ(net().connect(context.get(), 0, zeros.data(), &comm, nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(net().connect(context.get(), 0, noise.data(), &comm, nullptr), nccl::kInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  EXPECT_EQ(net().listen(context.get(), 99, zeros.data(), &comm), nccl::kInvalidArgument);
  EXPECT_EQ(net().listen(context.get(), -1, zeros.data(), &comm), nccl::kInvalidArgument);
}

TEST_F(PluginContract, AForgedTicketInAHandleIsNoPointer) {
  Context context;
  Handle handle{};
  void* listener = nullptr;
  ASSERT_EQ(net().listen(context.get(), 0, handle.data(), &listener), nccl::kSuccess);
  std::memset(handle.data() + 120, 0x5a, 8);  // where connect keeps its state
  void* send = nullptr;
  void* receive = nullptr;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(net().connect(context.get(), 0, handle.data(), &send, nullptr), nccl::kSuccess);
    if (receive == nullptr) {
      EXPECT_EQ(net().accept(listener, &receive, nullptr), nccl::kSuccess);
    }
    return send != nullptr || HasFailure();
  }));
  EXPECT_EQ(net().close_listen(listener), nccl::kSuccess);
}

TEST_F(PluginContract, ConnectAndAcceptAnswerNotYetAtOnce) {
  Context context;
  Handle handle{};
  void* listener = nullptr;
  ASSERT_EQ(net().listen(context.get(), 0, handle.data(), &listener), nccl::kSuccess);
  void* comm = &comm;
  nccl::DeviceHandle stale{};
  nccl::DeviceHandle* device_handle = &stale;
  EXPECT_EQ(net().accept(listener, &comm, &device_handle), nccl::kSuccess);
  EXPECT_EQ(comm, nullptr);
  EXPECT_EQ(device_handle, nullptr);
  // Nobody accepts: it stays not yet, however often it is asked.
  nccl::NetAttrV11 attributes{};
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(set_attributes(context, attributes), nccl::kSuccess);
    comm = &comm;
    ASSERT_EQ(net().connect(context.get(), 0, handle.data(), &comm, nullptr), nccl::kSuccess);
    ASSERT_EQ(comm, nullptr);
  }
  EXPECT_EQ(net().close_listen(listener), nccl::kSuccess);
}

TEST_F(PluginContract, AnInitThatFailsSaysWhyAndLeavesNothing) {
  WEFT_NEEDS_CONTEXTS();
  ::setenv("WEFT_PATHS", "many", 1);
  void* context = &context;
  EXPECT_EQ(net().init(&context, 1, nullptr, record_log, nullptr), nccl::kInvalidArgument);
  ::unsetenv("WEFT_PATHS");
  EXPECT_EQ(context, nullptr);
  EXPECT_NE(take_log().find("WEFT_PATHS=many"), std::string::npos);
  EXPECT_EQ(net().finalize(context), nccl::kSuccess);
  Context good;
  EXPECT_NE(good.get(), nullptr);
}

TEST_F(PluginContract, LogsNothingAfterTheLastFinalize) {
  WEFT_NEEDS_CONTEXTS();
  { Context context; }
  take_log();
  nccl::PropertiesV11 p{};
  EXPECT_EQ(net().get_properties(99, &p), nccl::kInvalidArgument);
  EXPECT_EQ(take_log(), "");
}

}  // namespace
}  // namespace weft::plugin_test
