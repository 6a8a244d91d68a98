// SPDX-License-Identifier: Apache-2.0
// One simulated host as its NIC sees it: links, the epochs of their paths, registered memory, and
// the inbox of what poll has still to deliver. Plain state without chance or time; the network
// changes it, the fabric reads it.
//
// The inbox is one queue for all kinds, in the order in which things happened: so the landings of
// an epoch come out of poll before the news that the epoch is killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "transport/base/post.h"
#include "transport/base/result.h"
#include "transport/base/units.h"
#include "transport/fabric.h"
#include "transport/memory.h"
#include "transport/sim/config.h"
#include "transport/sim/regions.h"

namespace weft::sim {

// Something posted that the network still holds, or that waits in an inbox.
struct Packet {
  uint32_t pool_index = 0;  // Pool's
  uint32_t pool_generation = 0;
  size_t place = 0;    // in the network's list of packets
  uint64_t order = 0;  // of posting
  int holders = 0;     // events and inbox entries that name it

  uint8_t from = 0;
  PathIndex path = 0;
  LinkId link = 0;       // the poster's name of it
  LinkId peer_link = 0;  // the other host's
  std::vector<std::byte>
      bytes;  // the datagram, or what the NIC read; keeps its capacity for the next user
  bool marked = false;

  // Writes only.
  bool is_write = false;
  const std::byte* source = nullptr;
  uint32_t size = 0;
  uint32_t local_key = 0;
  uint32_t epoch = 0;
  uint32_t immediate = 0;
  uint64_t remote_address = 0;
  uint64_t remote_key = 0;
  uint64_t cookie = 0;
  bool lost = false;
  uint32_t lost_prefix = 0;  // of a lost write: the bytes that it wrote before it was lost
  bool read = false;
  bool completed = false;
};

struct PathEnd {
  bool open = false;
  bool broken = false;        // still open for what is under way, but takes no posts
  uint32_t epoch = 0;         // the one open, or the last that was
  uint64_t killed_below = 0;  // epochs below can never be opened here again
  Time last_post{INT64_MIN};  // of this epoch, as the next three
  Time last_arrival{INT64_MIN};
  Time last_completion{INT64_MIN};
  size_t landings_held = 0;  // in the inbox
};

struct LinkEnd {
  bool connected = false;
  bool closed = false;
  LinkId peer = 0;
  std::vector<PathEnd> paths;
};

struct InboxItem {
  enum class Kind : uint8_t { kDatagram, kLanding, kCompletion, kPathChange };
  Kind kind = Kind::kDatagram;
  Packet* packet = nullptr;
  Landing landing;
  Completion completion;
  PathChange change;
};

class Host {
 public:
  Host(int number, const SimConfig& config) : number_(number), config_(config) {}

  static constexpr size_t kMaxLinks = 65536;

  Result<LinkId> create_link();
  // Null for a link that was never made or is closed.
  LinkEnd* link(LinkId id);
  // Null also when the link has no such path.
  PathEnd* path(LinkId id, PathIndex index);

  std::vector<std::byte> address_of(LinkId id) const;
  // Checks an address that `other` is said to have given; yields its link.
  Result<LinkId> read_address(std::span<const std::byte> address, Host& other) const;

  RegionTable& regions() { return regions_; }

  void push_landing(const Landing& landing);
  void push_completion(LinkId link, uint64_t cookie);
  void push_change(const PathChange& change);
  void push_datagram(Packet& packet);
  const std::deque<InboxItem>& inbox() const { return inbox_; }
  size_t inbox_size() const { return inbox_.size(); }
  // Takes the next item off the inbox. Precondition: there is one.
  InboxItem pop();
  size_t datagrams_held() const { return datagrams_held_; }
  // Takes what the inbox holds about a link out of it.
  void forget_link(LinkId id);

 private:
  int number_;
  const SimConfig& config_;
  std::vector<LinkEnd> links_;
  RegionTable regions_;
  std::deque<InboxItem> inbox_;
  size_t datagrams_held_ = 0;
};

}  // namespace weft::sim
