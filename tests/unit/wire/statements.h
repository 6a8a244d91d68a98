// SPDX-License-Identifier: Apache-2.0
// For tests of control: each statement's fields as a tuple, and random statements that are valid.
#pragma once

#include <tuple>

#include "transport/base/random.h"
#include "transport/wire/control.h"

namespace weft::wire {

inline auto fields(const Region& s) {
  return std::tie(s.id, s.epoch, s.base, s.length, s.rights, s.rails, s.keys);
}
inline auto fields(const RegionSeen& s) { return std::tie(s.id, s.epoch); }
inline auto fields(const GrantPart& s) {
  return std::tie(s.region, s.epoch, s.offset, s.size, s.tag);
}
inline bool operator==(const GrantPart& a, const GrantPart& b) { return fields(a) == fields(b); }
inline auto fields(const Grant& s) { return std::tie(s.flow, s.number, s.parts, s.part); }
inline auto fields(const GrantsSeen& s) { return std::tie(s.flow, s.below); }
inline auto fields(const Record& s) {
  return std::tie(s.flow, s.number, s.size, s.segment_bytes, s.slot, s.generation, s.part);
}
inline auto fields(const PathAck& s) {
  return std::tie(s.path, s.epoch, s.largest, s.hold_ns, s.marks, s.words, s.bits);
}
inline auto fields(const MessageAck& s) {
  return std::tie(s.flow, s.number, s.part, s.base, s.latest, s.hold_ns, s.words, s.bits);
}
inline auto fields(const FlowAck& s) { return std::tie(s.flow, s.below); }
inline auto fields(const Query& s) { return std::tie(s.flow, s.number, s.part); }
inline auto fields(const PathState& s) { return std::tie(s.path, s.phase, s.epoch, s.address); }
inline auto fields(const FlowState& s) {
  return std::tie(s.flow, s.role, s.phase, s.code, s.below);
}
inline auto fields(const FlowStateSeen& s) { return std::tie(s.flow, s.role, s.phase); }
inline auto fields(const Credit& s) { return std::tie(s.flow, s.bytes); }
inline auto fields(const OneSided& s) {
  return std::tie(s.operation, s.kind, s.region, s.epoch, s.remote_region, s.remote_epoch, s.offset,
                  s.remote_offset, s.size);
}
inline auto fields(const Ping& s) { return std::tie(s.sequence); }
inline auto fields(const Pong& s) { return std::tie(s.sequence); }

// Numbers of all magnitudes, the ends of the range among them.
template <class T>
T any(Random& r) {
  const uint64_t v = r.next() >> r.below(64);
  return static_cast<T>(r.chance(0.1) ? ~uint64_t{0} : r.chance(0.1) ? 0 : v);
}

inline uint64_t no_wrap(Random& r, uint64_t size) { return r.below(UINT64_MAX - size); }

inline void randomize(Random& r, Region* s) {
  s->id = any<uint32_t>(r), s->epoch = any<uint32_t>(r), s->length = any<uint64_t>(r);
  s->base = no_wrap(r, s->length), s->rights = any<uint32_t>(r);
  s->rails = static_cast<uint8_t>(r.below(kMaxRails + 1));
  for (int i = 0; i < s->rails; ++i) s->keys.at(static_cast<size_t>(i)) = any<uint64_t>(r);
}
inline void randomize(Random& r, RegionSeen* s) { *s = {any<uint32_t>(r), any<uint32_t>(r)}; }
inline void randomize(Random& r, Grant* s) {
  s->flow = any<uint32_t>(r), s->number = any<uint32_t>(r);
  s->parts = static_cast<uint8_t>(1 + r.below(kMaxParts));
  for (int i = 0; i < s->parts; ++i) {
    GrantPart& p = s->part.at(static_cast<size_t>(i));
    p.size = any<uint64_t>(r), p.offset = no_wrap(r, p.size);
    p.region = any<uint32_t>(r), p.epoch = any<uint32_t>(r), p.tag = any<int32_t>(r);
  }
}
inline void randomize(Random& r, GrantsSeen* s) { *s = {any<uint32_t>(r), any<uint32_t>(r)}; }
inline void randomize(Random& r, Record* s) {
  s->flow = any<uint32_t>(r), s->number = any<uint32_t>(r), s->size = any<uint64_t>(r);
  s->segment_bytes = 128 * static_cast<uint32_t>(1 + r.below(UINT32_MAX / 128));
  s->slot = any<uint16_t>(r), s->generation = any<uint8_t>(r);
  s->part = static_cast<uint8_t>(r.below(kMaxParts));
}
template <class Ack>
void randomize_words(Random& r, Ack* s) {
  s->words = static_cast<uint8_t>(r.below(kMaxAckWords + 1));
  for (int i = 0; i < s->words; ++i) s->bits.at(static_cast<size_t>(i)) = any<uint64_t>(r);
}
inline void randomize(Random& r, PathAck* s) {
  s->path = any<uint16_t>(r), s->epoch = any<uint32_t>(r), s->largest = any<uint64_t>(r);
  s->hold_ns = any<uint32_t>(r), s->marks = any<uint32_t>(r);
  randomize_words(r, s);
}
inline void randomize(Random& r, MessageAck* s) {
  s->flow = any<uint32_t>(r), s->number = any<uint32_t>(r);
  s->part = static_cast<uint32_t>(r.below(kMaxParts));
  s->base = any<uint32_t>(r), s->latest = any<uint32_t>(r), s->hold_ns = any<uint32_t>(r);
  randomize_words(r, s);
}
inline void randomize(Random& r, FlowAck* s) { *s = {any<uint32_t>(r), any<uint32_t>(r)}; }
inline void randomize(Random& r, Query* s) {
  *s = {any<uint32_t>(r), any<uint32_t>(r), static_cast<uint32_t>(r.below(kMaxParts))};
}
inline void randomize(Random& r, PathState* s) {
  s->path = any<uint16_t>(r), s->phase = static_cast<PathPhase>(1 + r.below(3));
  s->epoch = any<uint32_t>(r), s->address = any<uint64_t>(r);
}
inline void randomize(Random& r, FlowState* s) {
  s->flow = any<uint32_t>(r), s->role = static_cast<FlowRole>(1 + r.below(2));
  s->phase = static_cast<FlowPhase>(1 + r.below(3));
  s->code = any<uint32_t>(r), s->below = any<uint32_t>(r);
}
inline void randomize(Random& r, FlowStateSeen* s) {
  s->flow = any<uint32_t>(r), s->role = static_cast<FlowRole>(1 + r.below(2));
  s->phase = static_cast<FlowPhase>(1 + r.below(3));
}
inline void randomize(Random& r, Credit* s) { *s = {any<uint32_t>(r), any<uint64_t>(r)}; }
inline void randomize(Random& r, OneSided* s) {
  s->operation = any<uint64_t>(r), s->kind = static_cast<OneSidedKind>(1 + r.below(2));
  s->region = any<uint32_t>(r), s->epoch = any<uint32_t>(r);
  s->remote_region = any<uint32_t>(r), s->remote_epoch = any<uint32_t>(r);
  s->size = any<uint64_t>(r);
  s->offset = no_wrap(r, s->size), s->remote_offset = no_wrap(r, s->size);
}
inline void randomize(Random& r, Ping* s) { s->sequence = any<uint32_t>(r); }
inline void randomize(Random& r, Pong* s) { s->sequence = any<uint32_t>(r); }

// Calls f(S{}) for each type of statement S.
template <class F>
void for_each_statement(F f) {
  f(Region{}), f(RegionSeen{}), f(Grant{}), f(GrantsSeen{}), f(Record{}), f(PathAck{});
  f(MessageAck{}), f(FlowAck{}), f(Query{}), f(PathState{}), f(FlowState{}), f(FlowStateSeen{});
  f(Credit{}), f(OneSided{}), f(Ping{}), f(Pong{});
}

}  // namespace weft::wire
