// SPDX-License-Identifier: Apache-2.0
// Sends and receives of a replay: the buffers made ready, then one attempt after the other. See
// replay.h.
#include <algorithm>

#include <fmt/format.h>

#include "tools/ncclnet/replay.h"

namespace weft::ncclnet {

void ReplayThread::prepare_send(const TraceLine& line) {
  const TracePart& part = line.parts[0];
  unsigned char* at = replay_.address_of(part);
  Replay::Request& request = replay_.requests[static_cast<size_t>(line.request)];
  request.ranges[0] = replay_.ranges.open(at, part.size, 0, 0);
  tools::fill_pattern(
      at, part.size,
      tools::pattern_seed(replay_.rank.index(), static_cast<uint64_t>(line.request)));
  replay_.rank.data_begins();
}

bool ReplayThread::try_send(const TraceLine& line) {
  Rank& rank = replay_.rank;
  const TracePart& part = line.parts[0];
  void* handle = nullptr;
  rank.call(Call::kIsend, rank.api().isend, comm(line),
            static_cast<void*>(replay_.address_of(part)), part.size, part.tag,
            replay_.mhandles[static_cast<size_t>(part.mhandle)], Rank::profile_handle(), &handle);
  if (handle == nullptr) return false;
  posted(line, handle);
  return true;
}

void ReplayThread::prepare_receive(const TraceLine& line) {
  constexpr size_t kGuardBytes = 64;
  Replay::Request& request = replay_.requests[static_cast<size_t>(line.request)];
  const RequestInfo& info = replay_.mine->requests[static_cast<size_t>(line.request)];
  for (size_t i = 0; i < line.parts.size(); ++i) {
    const TracePart& part = line.parts[i];
    const size_t comes = i < info.sources.size() ? info.sources[i].size : part.size;
    request.ranges[i] = replay_.ranges.open(replay_.address_of(part), part.size, comes,
                                            std::min(part.size - comes, kGuardBytes));
  }
  replay_.rank.data_begins();
}

bool ReplayThread::try_receive(const TraceLine& line) {
  Rank& rank = replay_.rank;
  void* data[kMaxParts];
  void* mhandles[kMaxParts];
  void* profiles[kMaxParts];
  size_t sizes[kMaxParts];
  int tags[kMaxParts];
  const size_t count = line.parts.size();
  for (size_t i = 0; i < count; ++i) {
    const TracePart& part = line.parts[i];
    data[i] = replay_.address_of(part);
    mhandles[i] = replay_.mhandles[static_cast<size_t>(part.mhandle)];
    profiles[i] = Rank::profile_handle();
    sizes[i] = part.size;
    tags[i] = part.tag;
  }
  void* handle = line.optional ? WEFT_NCCL_OPTIONAL_RECV_COMPLETION : nullptr;
  rank.call(Call::kIrecv, rank.api().irecv, comm(line), static_cast<int>(count), data, sizes, tags,
            mhandles, profiles, &handle);
  if (handle == nullptr) return false;
  if (handle == WEFT_NCCL_OPTIONAL_RECV_COMPLETION) {
    rank.fail(tools::kFailed, fmt::format("{}irecv left the optional-completion hint in *request; "
                                          "it must write a request or null",
                                          Rank::place()));
  }
  posted(line, handle);
  return true;
}

}  // namespace weft::ncclnet
