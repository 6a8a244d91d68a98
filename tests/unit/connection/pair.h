// SPDX-License-Identifier: Apache-2.0
// Two connections face to face, with nothing between them but what a test decides.
//
// What either end transmits goes into `wire` as Parcels; deliver() hands them over, through `lose`
// (drop it?) first. Time stands still unless a test moves it. On a placing pair a parcel's bytes
// are written on delivery and its completion is reported right after transmission unless
// `hold_completions` is set.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "multipath/connection/connection.h"
#include "multipath/connection/matcher.h"

namespace weft::test {

struct Parcel {
  int from = 0;
  bool control = false;
  SegmentPost segment;
  ControlPost packet;
  std::vector<std::byte> payload;  // as it was when posted (datagram)
  wire::DataHeader header;         // datagram data
  bool is_probe() const;
};

class Pair {
 public:
  explicit Pair(Offloads offloads = {}, std::function<void(ConnectionConfig&)> adjust = {});

  // Opens a flow from `from` to the other end.
  FlowId open_flow(int from);
  // Room of its own, registered at `host`.
  struct Buffer {
    std::vector<std::byte> bytes;
    RegionId region = 0;
    std::byte* base() { return bytes.data(); }
  };
  Buffer* buffer(int host, size_t bytes, std::byte fill = std::byte{0xee});
  bool receive(int host, FlowId flow, Buffer* to, int32_t tag = 0, Token token = 0);
  // Matches and posts; false when there is no grant yet.
  bool send(int host, FlowId flow, Buffer* from, size_t bytes, int32_t tag = 0, Token token = 0,
            const TrafficHints& hints = {});

  // One turn of an end: timers, transmission into `wire`, events.
  void turn(int host);
  // Hands over what lies in `wire` now; returns how many parcels there were.
  size_t deliver();
  // Turns and deliveries until nothing moves, time standing still.
  void settle();
  // settle(), moving time to the next deadline, until `done` or `limit` of time has passed.
  bool run(const std::function<bool()>& done, Duration limit = seconds(30));

  // Events of one kind seen at a host so far.
  std::vector<Event> events(int host, Event::Kind kind) const;
  size_t count(int host, Event::Kind kind) const { return events(host, kind).size(); }

  std::array<std::unique_ptr<Connection>, 2> end;
  Time now = Time{1000000};
  std::deque<Parcel> wire;
  std::function<bool(const Parcel&)> lose = [](const Parcel&) { return false; };
  std::vector<Parcel> history;  // everything ever transmitted
  bool hold_completions = false;
  std::vector<std::pair<int, uint64_t>> held;
  std::vector<std::pair<int, PathCommand>> kills;  // asked of the fabric, not yet carried out
  bool carry_out_kills = true;
  const Offloads offloads;

 private:
  void transmit(int host);
  void hand_over(const Parcel& parcel);

  std::array<std::unique_ptr<Outbox>, 2> outbox_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::array<std::vector<Event>, 2> events_;
  std::array<std::vector<std::pair<FlowId, std::unique_ptr<Matcher>>>, 2> matchers_;
};

}  // namespace weft::test
