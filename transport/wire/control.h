// SPDX-License-Identifier: Apache-2.0
// The statements of a control packet, byte by byte.
//
// Control is level-triggered: a statement repeats a state and never an event, so losing, repeating
// or reordering control packets is harmless. Each statement is
//
//    0  u8   type
//    1  u8   count of the repeated group, 0 where there is none
//    2  u16  bytes of the body that follows
//    4  ...  body; a receiver ignores types it does not know and bytes past the fields it knows
//
// Flows are named by the id that their receiver chose. "->" tells who says it: S the sender of the
// flow, R its receiver, both where it is about no flow.
//
//   1 region          ->    id u32, epoch u32, base u64, length u64, rights u32, reserved u32,
//                           key u64 x count (one a rail)
//   2 region seen     ->    id u32, epoch u32
//   3 grant           R->S  flow u32, number u32, {region u32, epoch u32, offset u64, size u64,
//                           tag i32, reserved u32} x count
//   4 grants seen     S->R  flow u32, below u32: every grant below this number is known
//   5 record          S->R  flow u32, number u32, size u64, segment size u32, slot u16,
//                           generation u8, part u8
//   6 path ack        ->    path u16, reserved u16, epoch u32, largest u64, hold ns u32, marks u32,
//                           bits u64 x count: packet largest + 1 - 64 x count + k arrived.
//                           Placing fabrics: no bits; largest is the sequence of the last probe
//                           that arrived in this epoch
//   7 message ack     R->S  flow u32, number u32, part u8, sized u8, reserved u16, base u32,
//                           latest u32, hold ns u32, bits u64 x count: all segments below base
//                           arrived, and segment base + k for each bit k; latest came last, hold
//                           ago; sized: the message's record, or a segment that says as much, is
//                           known
//   8 flow ack        R->S  flow u32, below u32: every message below this number is complete
//   9 query           S->R  flow u32, number u32, part u32: say what you have of it
//  10 path state      ->    path u16, state u8 (1 live, 2 kill it, 3 killed here), reserved u8,
//                           epoch u32, address u64
//  11 flow state      ->    flow u32, role u8 (1 I send, 2 I receive), state u8 (1 open,
//                           2 finished, 3 reset), reserved u16, code u32,
//                           below u32 (numbers below are complete)
//  12 flow state seen ->    flow u32, role u8 (of who said it), state u8, reserved u16
//  13 credit          R->S  flow u32 (all ones: the connection), reserved u32,
//                           bytes u64 (sum of all credit ever given)
//  14 one-sided       ->    operation u64, kind u8 (1 put, 2 get), reserved u8 x 3, region u32,
//                           epoch u32, remote region u32, remote epoch u32, reserved u32,
//                           offset u64, remote offset u64, size u64
//  15 ping            ->    sequence u32: answer with pong
//  16 pong            ->    sequence u32
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transport/base/post.h"
#include "transport/wire/cursor.h"
#include "transport/wire/packet.h"

namespace weft::wire {

inline constexpr int kMaxParts = 8;     // of a grouped receive
inline constexpr int kMaxRails = 8;     // keys of a region
inline constexpr int kMaxAckWords = 8;  // 512 segments or packets in one statement

enum class Type : uint8_t {
  kRegion = 1,
  kRegionSeen,
  kGrant,
  kGrantsSeen,
  kRecord,
  kPathAck,
  kMessageAck,
  kFlowAck,
  kQuery,
  kPathState,
  kFlowState,
  kFlowStateSeen,
  kCredit,
  kOneSided,
  kPing,
  kPong,
};

struct Region {
  uint32_t id = 0, epoch = 0;
  uint64_t base = 0, length = 0;
  uint32_t rights = 0;  // 1: may be written by a put
  uint8_t rails = 0;
  std::array<uint64_t, kMaxRails> keys{};
};
struct RegionSeen {
  uint32_t id = 0, epoch = 0;
};
struct GrantPart {
  uint32_t region = 0, epoch = 0;
  uint64_t offset = 0, size = 0;
  int32_t tag = 0;
};
struct Grant {
  uint32_t flow = 0, number = 0;
  uint8_t parts = 0;
  std::array<GrantPart, kMaxParts> part{};
};
struct GrantsSeen {
  uint32_t flow = 0, below = 0;
};
struct Record {
  uint32_t flow = 0, number = 0;
  uint64_t size = 0;
  uint32_t segment_bytes = 0;
  uint16_t slot = 0;
  uint8_t generation = 0, part = 0;
};
struct PathAck {
  uint16_t path = 0;
  uint32_t epoch = 0;
  uint64_t largest = 0;
  uint32_t hold_ns = 0, marks = 0;
  uint8_t words = 0;
  std::array<uint64_t, kMaxAckWords> bits{};
};
struct MessageAck {
  uint32_t flow = 0, number = 0;
  uint8_t part = 0;
  bool sized = false;
  uint32_t base = 0, latest = 0, hold_ns = 0;
  uint8_t words = 0;
  std::array<uint64_t, kMaxAckWords> bits{};
};
struct FlowAck {
  uint32_t flow = 0, below = 0;
};
struct Query {
  uint32_t flow = 0, number = 0, part = 0;
};
enum class PathPhase : uint8_t { kLive = 1, kKill = 2, kKilled = 3 };
struct PathState {
  uint16_t path = 0;
  PathPhase phase = PathPhase::kLive;
  uint32_t epoch = 0;
  uint64_t address = 0;
};
enum class FlowRole : uint8_t { kSender = 1, kReceiver = 2 };
enum class FlowPhase : uint8_t { kOpen = 1, kFinished = 2, kReset = 3 };
struct FlowState {
  uint32_t flow = 0;
  FlowRole role = FlowRole::kSender;
  FlowPhase phase = FlowPhase::kOpen;
  uint32_t code = 0, below = 0;
};
struct FlowStateSeen {
  uint32_t flow = 0;
  FlowRole role = FlowRole::kSender;
  FlowPhase phase = FlowPhase::kOpen;
};
struct Credit {
  uint32_t flow = 0;
  uint64_t bytes = 0;
};
enum class OneSidedKind : uint8_t { kPut = 1, kGet = 2 };
struct OneSided {
  uint64_t operation = 0;
  OneSidedKind kind = OneSidedKind::kPut;
  uint32_t region = 0, epoch = 0, remote_region = 0, remote_epoch = 0;
  uint64_t offset = 0, remote_offset = 0, size = 0;
};
struct Ping {
  uint32_t sequence = 0;
};
struct Pong {
  uint32_t sequence = 0;
};

// Fills one control packet. add() returns false, leaving the packet as it was, when the statement
// does not fit; finish() writes the header and returns the packet's length.
class ControlWriter {
 public:
  explicit ControlWriter(std::span<std::byte> packet)
      : packet_(packet), body_(packet.subspan(kControlHeaderBytes)) {}

  bool add(const Region&);
  bool add(const RegionSeen&);
  bool add(const Grant&);
  bool add(const GrantsSeen&);
  bool add(const Record&);
  bool add(const PathAck&);
  bool add(const MessageAck&);
  bool add(const FlowAck&);
  bool add(const Query&);
  bool add(const PathState&);
  bool add(const FlowState&);
  bool add(const FlowStateSeen&);
  bool add(const Credit&);
  bool add(const OneSided&);
  bool add(const Ping&);
  bool add(const Pong&);

  bool empty() const { return body_.size() == 0; }
  size_t finish(Address to, ControlHeader header);
  // The statements alone, as the out-of-band stream carries them.
  std::span<const std::byte> statements() const {
    return packet_.subspan(kControlHeaderBytes, body_.size());
  }

 private:
  template <class Body>
  bool statement(Type type, uint8_t count, Body body);

  std::span<std::byte> packet_;
  Writer body_;
};

bool decode(Reader& r, uint8_t count, Region* out);
bool decode(Reader& r, uint8_t count, RegionSeen* out);
bool decode(Reader& r, uint8_t count, Grant* out);
bool decode(Reader& r, uint8_t count, GrantsSeen* out);
bool decode(Reader& r, uint8_t count, Record* out);
bool decode(Reader& r, uint8_t count, PathAck* out);
bool decode(Reader& r, uint8_t count, MessageAck* out);
bool decode(Reader& r, uint8_t count, FlowAck* out);
bool decode(Reader& r, uint8_t count, Query* out);
bool decode(Reader& r, uint8_t count, PathState* out);
bool decode(Reader& r, uint8_t count, FlowState* out);
bool decode(Reader& r, uint8_t count, FlowStateSeen* out);
bool decode(Reader& r, uint8_t count, Credit* out);
bool decode(Reader& r, uint8_t count, OneSided* out);
bool decode(Reader& r, uint8_t count, Ping* out);
bool decode(Reader& r, uint8_t count, Pong* out);

// Calls handler.on(statement) for each statement of `statements` in order. Returns false, having
// stopped there, at the first that is malformed; unknown types are skipped.
template <class Handler>
bool read_statements(std::span<const std::byte> statements, Handler& handler) {
  const auto deliver = [&]<class S>(Reader& body, uint8_t count, S statement) {
    if (!decode(body, count, &statement)) return false;
    handler.on(statement);
    return true;
  };
  Reader r(statements);
  while (r.left() > 0) {
    const auto type = r.get<uint8_t>();
    const auto count = r.get<uint8_t>();
    const auto length = r.get<uint16_t>();
    Reader body(r.get_bytes(length));
    if (r.failed()) return false;
    bool good = true;
    switch (static_cast<Type>(type)) {
      case Type::kRegion: good = deliver(body, count, Region{}); break;
      case Type::kRegionSeen: good = deliver(body, count, RegionSeen{}); break;
      case Type::kGrant: good = deliver(body, count, Grant{}); break;
      case Type::kGrantsSeen: good = deliver(body, count, GrantsSeen{}); break;
      case Type::kRecord: good = deliver(body, count, Record{}); break;
      case Type::kPathAck: good = deliver(body, count, PathAck{}); break;
      case Type::kMessageAck: good = deliver(body, count, MessageAck{}); break;
      case Type::kFlowAck: good = deliver(body, count, FlowAck{}); break;
      case Type::kQuery: good = deliver(body, count, Query{}); break;
      case Type::kPathState: good = deliver(body, count, PathState{}); break;
      case Type::kFlowState: good = deliver(body, count, FlowState{}); break;
      case Type::kFlowStateSeen: good = deliver(body, count, FlowStateSeen{}); break;
      case Type::kCredit: good = deliver(body, count, Credit{}); break;
      case Type::kOneSided: good = deliver(body, count, OneSided{}); break;
      case Type::kPing: good = deliver(body, count, Ping{}); break;
      case Type::kPong: good = deliver(body, count, Pong{}); break;
      default: break;
    }
    if (!good) return false;
  }
  return !r.failed();
}

}  // namespace weft::wire
