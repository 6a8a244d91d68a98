// SPDX-License-Identifier: Apache-2.0
// The contract of a fabric: a driver for one kind of NIC access (udp, sim; verbs, ucx, dpdk to
// come).
//
// A fabric moves datagrams (control, and on datagram fabrics data too) and, where its NIC places,
// writes. It knows links and paths and no message. Set-up calls return Result; the data path is
// three batch calls, post, post_control and poll, each virtual once a batch. What poll finds it
// hands to a FabricSink.
//
// Threading: one caller at a time (the engine that owns the fabric); wait_descriptors may be polled
// by another thread. Ownership: a fabric owns its sockets or queue pairs and its receive buffers;
// spans that it hands to a sink are valid during that call. Failure: a path that breaks is reported
// as PathChange or is simply silent; posting never fails, it takes fewer posts than it was given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/base/offloads.h"
#include "transport/base/post.h"
#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/memory.h"

namespace weft {

// A received datagram. The fabric fills the first group, the sink answers in the second.
struct Datagram {
  const std::byte* bytes = nullptr;
  uint32_t size = 0;
  bool congestion_marked = false;

  std::byte* destination = nullptr;  // where bytes[header_bytes, size) belong; null: nowhere
  uint32_t header_bytes = 0;
  uint64_t cookie = 0;  // the sink's own
};

// A write that the NIC has put in place (placing fabrics).
struct Landing {
  LinkId link = 0;
  PathIndex path = 0;
  uint32_t epoch = 0;
  uint32_t immediate = 0;
  uint32_t bytes = 0;
};

// A post whose source is no longer read by anybody. Datagram fabrics copy at post time and need not
// report.
struct Completion {
  LinkId link = 0;
  uint64_t cookie = 0;
};

struct PathChange {
  enum class What : uint8_t {
    kKilled,  // kill_path is carried out: nothing of this epoch lands here any more
    kBroken,  // the NIC gave the path up (queue pair error, port down)
  };
  LinkId link = 0;
  PathIndex path = 0;
  uint32_t epoch = 0;
  What what = What::kKilled;
};

// Where poll delivers. For datagrams: receive() for a batch, then the fabric copies what got a
// destination, then arrived() for the same batch.
class FabricSink {
 public:
  virtual ~FabricSink() = default;
  virtual void receive(std::span<Datagram> batch) = 0;
  virtual void arrived(std::span<const Datagram> batch) = 0;
  virtual void landed(std::span<const Landing> batch) = 0;
  virtual void completed(std::span<const Completion> batch) = 0;
  virtual void path_changed(std::span<const PathChange> batch) = 0;
};

// What the two ends of a link tell each other once, opaque to everybody else.
using LinkAddress = std::vector<std::byte>;
inline constexpr size_t kMaxLinkAddress = 4096;

struct MemoryKeys {
  uint32_t local = 0;
  uint64_t remote = 0;
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual const char* name() const = 0;
  virtual Offloads offloads() const = 0;
  // Largest payload of one segment, a multiple of kLineBytes.
  virtual uint32_t max_segment_bytes() const = 0;
  // Payload of the longest burst of such segments that leaves in one piece; a longer one would be
  // cut, and its rest cost as much as a whole.
  virtual uint32_t burst_bytes(uint32_t segment_bytes) const {
    return std::max(segment_bytes, 64u << 10);
  }
  // How many paths a link offers at most.
  virtual int max_paths() const = 0;
  // Mbit/s of the port, 0 if unknown.
  virtual uint32_t speed_mbps() const = 0;

  // Set-up. create_link reserves what this side needs and says in *address what the peer must know;
  // connect_link takes the peer's answer, checked as hostile bytes. Neither blocks.
  virtual Result<LinkId> create_link(LinkAddress* address) = 0;
  virtual Status connect_link(LinkId link, std::span<const std::byte> peer_address) = 0;
  // Paths of a connected link: the smaller of what the two ends offer is not a rule, pairs may
  // repeat a port.
  virtual int paths(LinkId link) const = 0;
  virtual void close_link(LinkId link) = 0;

  virtual Result<MemoryKeys> register_memory(const MemoryRange& range) = 0;
  virtual void deregister_memory(MemoryKeys keys) = 0;

  // Placing fabrics: end a path's epoch in both directions (ERR, drain, RESET on verbs), answered
  // by PathChange::kKilled; reopen_path gives it a queue pair of the new epoch. No-ops on datagram
  // fabrics.
  virtual void kill_path(LinkId link, PathIndex path, uint32_t epoch) = 0;
  virtual void reopen_path(LinkId link, PathIndex path, uint32_t epoch) = 0;

  // How many segments post would take now, about; no limit where it is not known.
  virtual size_t room() const { return SIZE_MAX; }
  // The data path. Each takes a prefix of its batch and returns how many; what was not taken was
  // not sent.
  virtual size_t post(Time now, std::span<const SegmentPost> batch) = 0;
  virtual size_t post_control(Time now, std::span<const ControlPost> batch) = 0;
  // Delivers at most `budget` arrivals; returns how many it delivered.
  virtual size_t poll(Time now, size_t budget, FabricSink& sink) = 0;

  // Descriptors that become readable when poll would find something.
  virtual std::span<const int> wait_descriptors() const = 0;
};

}  // namespace weft
