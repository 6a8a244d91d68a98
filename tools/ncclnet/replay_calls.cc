// SPDX-License-Identifier: Apache-2.0
// The calls of a replay that neither send nor receive, one line each. See replay.h.
#include <cstring>

#include <fmt/format.h>

#include "tools/ncclnet/replay.h"

namespace weft::ncclnet {
namespace {

nccl::CommAttrV11 comm_attributes(const int64_t* values) {
  return {static_cast<int32_t>(values[0]), static_cast<int32_t>(values[1]),
          static_cast<int32_t>(values[2]), static_cast<int32_t>(values[3])};
}

}  // namespace

void*& ReplayThread::comm(const TraceLine& line) {
  auto& table = line.comm_kind == 's' ? replay_.sends : replay_.recvs;
  return table[static_cast<size_t>(line.comm)];
}

void ReplayThread::set_up(const TraceLine& line) {
  Rank& rank = replay_.rank;
  const Api& api = rank.api();
  switch (line.call) {
    case Call::kInit: {
      CommConfig config{line.traffic_class};
      rank.call(Call::kInit, api.init, &replay_.contexts[static_cast<size_t>(line.context)],
                line.comm_id, &config, Rank::logger(), line.profiler ? Rank::profiler() : nullptr);
      break;
    }
    case Call::kDevices: {
      int count = 0;
      rank.call(Call::kDevices, api.devices, &count);
      if (count <= 0) rank.fail(tools::kCannotRunHere, "the plugin finds no network device here");
      break;
    }
    case Call::kGetProperties: {
      Properties properties{};
      rank.call(Call::kGetProperties, api.get_properties, line.device, &properties);
      break;
    }
    case Call::kListen: {
      char handle[nccl::kHandleBytes] = {};
      rank.call(Call::kListen, api.listen, replay_.contexts[static_cast<size_t>(line.context)],
                line.device, static_cast<void*>(handle),
                &replay_.listens[static_cast<size_t>(line.listen)]);
      rank.channel().publish(line.handle, handle, sizeof handle);
      break;
    }
    case Call::kFinalize:
      rank.call(Call::kFinalize, api.finalize, replay_.contexts[static_cast<size_t>(line.context)]);
      break;
    default: break;
  }
}

// Device memory is taken as host memory for now; so is what came as a dma-buf.
void ReplayThread::register_memory(const TraceLine& line) {
  replay_.freed.registered(replay_.arenas.at(line.base), line.size,
                           fmt::format("m{} (registered at line {})", line.mhandle, line.number));
  replay_.rank.call(Call::kRegMr, replay_.rank.api().reg_mr, comm(line),
                    static_cast<void*>(replay_.arenas.at(line.base)), line.size,
                    static_cast<int>(nccl::kPtrHost),
                    &replay_.mhandles[static_cast<size_t>(line.mhandle)]);
}

void ReplayThread::set_attributes(const TraceLine& line) {
  attributes_ = {comm_attributes(line.send_attr), comm_attributes(line.recv_attr), line.op,
                 line.algo, line.proto};
  have_attributes_ = true;
  if (replay_.rank.api().set_net_attr == nullptr) return;
  replay_.rank.call(Call::kSetNetAttr, replay_.rank.api().set_net_attr,
                    replay_.contexts[static_cast<size_t>(line.context)], &attributes_);
}

void ReplayThread::flush(const TraceLine& line) {
  Rank& rank = replay_.rank;
  void* data[kMaxParts];
  void* mhandles[kMaxParts];
  int sizes[kMaxParts];
  for (size_t i = 0; i < line.parts.size(); ++i) {
    data[i] = replay_.address_of(line.parts[i]);
    mhandles[i] = replay_.mhandles[static_cast<size_t>(line.parts[i].mhandle)];
    sizes[i] = static_cast<int>(line.parts[i].size);
  }
  void* handle = nullptr;
  if (rank.api().iflush != nullptr) {
    rank.call(Call::kIflush, rank.api().iflush, comm(line), static_cast<int>(line.parts.size()),
              data, sizes, mhandles, &handle);
  }
  if (line.request < 0) {
    // Nothing to wait for in the recording; here there may be.
    int done = handle == nullptr ? 1 : 0;
    while (done == 0) {
      rank.call(Call::kTest, rank.api().test, handle, &done, static_cast<int*>(nullptr));
      poll();
    }
  } else if (handle != nullptr) {
    posted(line, handle);
  } else {
    replay_.requests[static_cast<size_t>(line.request)].done = true;
  }
}

void ReplayThread::close(const TraceLine& line) {
  Rank& rank = replay_.rank;
  const Api& api = rank.api();
  switch (line.call) {
    case Call::kDeregMr: {
      rank.call(Call::kDeregMr, api.dereg_mr, comm(line),
                replay_.mhandles[static_cast<size_t>(line.mhandle)]);
      const TraceLine& region = replay_.region_of(line.mhandle);
      replay_.freed.deregistered(replay_.arenas.at(region.base), region.size);
      break;
    }
    case Call::kCloseSend: rank.call(Call::kCloseSend, api.close_send, comm(line)); break;
    case Call::kCloseRecv: rank.call(Call::kCloseRecv, api.close_recv, comm(line)); break;
    default:
      rank.call(Call::kCloseListen, api.close_listen,
                replay_.listens[static_cast<size_t>(line.listen)]);
  }
}

void ReplayThread::posted(const TraceLine& line, void* handle) {
  replay_.requests[static_cast<size_t>(line.request)].handle = handle;
  open_of(line).push_back(line.request);
  ++open_count_;
}

}  // namespace weft::ncclnet
