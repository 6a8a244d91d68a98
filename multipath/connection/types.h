// SPDX-License-Identifier: Apache-2.0
// The plain values that go into and come out of a connection.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "transport/base/offloads.h"
#include "transport/base/post.h"
#include "transport/base/units.h"
#include "transport/wire/control.h"
#include "transport/wire/packet.h"

namespace weft {

// A flow as its receiver named it. The low 14 bits also go into immediate data; the rest count
// reuses.
using FlowId = uint32_t;
inline constexpr uint32_t kFlowIndexBits = 14;
inline constexpr uint32_t flow_index(FlowId id) { return id & ((1u << kFlowIndexBits) - 1); }

// What the caller wants to hear back with an event; never looked at.
using Token = uint64_t;

// Registered memory of this connection, dense and reused.
using RegionId = uint32_t;

inline constexpr uint32_t kMaxReceives = 64;  // posted and not complete, of a flow
inline constexpr uint32_t kMaxPartsInFlow = 256;
inline constexpr uint32_t kMaxRegions = 65536;
// Segments of a message outstanding, at most. A fast network empties a small window before the one
// segment that is lost is repaired.
inline constexpr uint32_t kSegmentWindow = 1024;

struct ConnectionConfig {
  Offloads offloads;   // of the fabric below
  wire::Address peer;  // how the peer wants to be addressed
  int paths = 1;       // 1..kMaxPaths
  uint8_t rail = 0;
  uint32_t segment_bytes = 1408;       // of what we send; a multiple of 128
  uint32_t peer_segment_bytes = 1408;  // of what the peer sends
  uint32_t burst_bytes = 64 << 10;     // posted together on one path, at most
  uint64_t window_bytes = 2 << 20;     // in flight, at most
  std::string_view law = "nscc";
  std::string_view selector = "reps";
  double port_bytes_per_second = 0;         // what the port claims; 0: nothing
  Duration noise_floor = microseconds(25);  // of RTT samples: less is not told from noise here
  Duration timer_floor = milliseconds(2);  // no time-out is shorter: this fabric's scheduling noise
  // No network of this fabric's kind is taken to be longer before it has shown it.
  Duration longest_base_rtt = microseconds(200);
  Duration max_hold = microseconds(100);   // an ack is late by no more
  Duration initial_rtt = milliseconds(1);  // until there is a sample
  Duration peer_timeout = seconds(10);     // silence for which a peer is dead
  uint64_t seed = 0;
};

// One part of a receive.
struct ReceivePart {
  std::byte* base = nullptr;  // where byte 0 of the message goes
  uint64_t size = 0;          // room there
  RegionId region = 0;        // which covers it; ignored when size == 0 and base is null
  int32_t tag = 0;
};

// What the application said of the traffic around a send (NCCL's setNetAttr, from version 11 on).
// Only hints: nothing breaks when they are wrong. Eight bytes, so that they change as one; aligned,
// or clang calls a library (libatomic) for it that the plugin does not have.
struct alignas(8) TrafficHints {
  uint32_t operations = 0;     // a mask whose meaning is the application's; 0: not said
  uint16_t peers = 0;          // to whom it sends at once, at most; 0: not said
  uint8_t flows_per_peer = 0;  // likewise
  bool latency_bound = false;  // somebody waits for each of the messages

  bool operator==(const TrafficHints&) const = default;
};

// Messages up to here go before all others if they are latency-bound: as much as one of NCCL's LL
// protocol carries. Longer ones would hold up what waits beside them.
inline constexpr uint64_t kUrgentBytes = 64 << 10;

// A send that was matched to a grant (see Matcher).
struct MatchedSend {
  FlowId flow = 0;
  uint32_t number = 0;
  uint8_t part = 0;
  const std::byte* source = nullptr;
  uint64_t bytes = 0;
  uint32_t local_key = 0;
  RegionId region = 0;
  Token token = 0;
  TrafficHints hints;
};

enum class Failure : uint8_t {
  kNone = 0,
  kPeerSilent,    // nothing was heard for the peer time-out
  kPeerClosed,    // the peer ended the flow, or itself, with our work outstanding
  kPeerBroke,     // the peer said what cannot be
  kTooLarge,      // a send larger than its receive
  kDeregistered,  // memory in use was taken away here
  kLocal,         // the caller asked for the impossible
};

constexpr const char* describe(Failure failure) {
  switch (failure) {
    case Failure::kNone: return "no failure";
    case Failure::kPeerSilent: return "the peer was silent on every path for the peer time-out";
    case Failure::kPeerClosed: return "the peer closed its side with messages outstanding";
    case Failure::kPeerBroke: return "the peer said something impossible";
    case Failure::kTooLarge: return "a send is larger than the receive it was matched to";
    case Failure::kDeregistered: return "memory was deregistered while in use";
    case Failure::kLocal: return "a call that makes no sense";
  }
  return "unknown failure";
}

struct Event {
  enum class Kind : uint8_t {
    kGranted,     // `grant` may now be matched; grants of a flow come in number order, each once
    kSent,        // the send with `token` is complete: its source is the caller's again
    kReceived,    // the receive with `token` is complete: `sizes[0..parts)` bytes are in place
    kFlowFailed,  // nothing more will complete on this flow; close it
  };
  Kind kind = Kind::kGranted;
  FlowId flow = 0;
  wire::FlowRole role = wire::FlowRole::kSender;  // ours in that flow
  Token token = 0;
  uint32_t number = 0;
  uint8_t parts = 0;
  std::array<uint64_t, wire::kMaxParts> sizes{};
  wire::Grant grant;
  Failure failure = Failure::kNone;
};

// What poll_transmit fills: everything is posted by the caller right after.
struct PathCommand {
  enum class What : uint8_t { kKill, kReopen };
  PathIndex path = 0;
  uint32_t epoch = 0;
  What what = What::kKill;
};

struct Outbox {
  static constexpr size_t kSegments = 176;  // four of UDP's trains at an MTU of 1500
  static constexpr size_t kControls = 16;
  static constexpr size_t kCommands = 32;

  std::array<SegmentPost, kSegments> segment;
  std::array<ControlPost, kControls> control;
  std::array<PathCommand, kCommands> command;
  size_t segments = 0, controls = 0, commands = 0;
  size_t segment_limit = kSegments;  // how many the fabric would take

  bool segments_full() const { return segments >= segment_limit; }
  void clear() { segments = controls = commands = 0; }
  bool empty() const { return segments + controls + commands == 0; }
};

}  // namespace weft
