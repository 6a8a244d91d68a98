// SPDX-License-Identifier: Apache-2.0
// Codecs of the statements; the layouts are in control.h.
#include "transport/wire/control.h"

namespace weft::wire {

template <class Body>
bool ControlWriter::statement(Type type, uint8_t count, Body body) {
  const size_t start = body_.size();
  body_.put<uint8_t>(static_cast<uint8_t>(type));
  body_.put<uint8_t>(count);
  body_.put<uint16_t>(0);
  const size_t first = body_.size();
  body(body_);
  if (body_.failed()) {
    body_.rewind(start);
    return false;
  }
  body_.patch<uint16_t>(first - 2, static_cast<uint16_t>(body_.size() - first));
  return true;
}

size_t ControlWriter::finish(Address to, ControlHeader header) {
  header.statement_bytes = static_cast<uint16_t>(body_.size());
  encode_control(packet_, to, header);
  return kControlHeaderBytes + body_.size();
}

bool ControlWriter::add(const Region& s) {
  return statement(Type::kRegion, s.rails, [&](Writer& w) {
    w.put<uint32_t>(s.id);
    w.put<uint32_t>(s.epoch);
    w.put<uint64_t>(s.base);
    w.put<uint64_t>(s.length);
    w.put<uint32_t>(s.rights);
    w.put<uint32_t>(0);
    for (int i = 0; i < s.rails; ++i) w.put<uint64_t>(s.keys[i]);
  });
}

bool decode(Reader& r, uint8_t count, Region* out) {
  out->id = r.get<uint32_t>();
  out->epoch = r.get<uint32_t>();
  out->base = r.get<uint64_t>();
  out->length = r.get<uint64_t>();
  out->rights = r.get<uint32_t>();
  r.skip(4);
  if (count > kMaxRails || out->base + out->length < out->base) return false;
  out->rails = count;
  for (int i = 0; i < count; ++i) out->keys[i] = r.get<uint64_t>();
  return !r.failed();
}

bool ControlWriter::add(const RegionSeen& s) {
  return statement(Type::kRegionSeen, 0, [&](Writer& w) {
    w.put<uint32_t>(s.id);
    w.put<uint32_t>(s.epoch);
  });
}

bool decode(Reader& r, uint8_t, RegionSeen* out) {
  out->id = r.get<uint32_t>();
  out->epoch = r.get<uint32_t>();
  return !r.failed();
}

bool ControlWriter::add(const Grant& s) {
  return statement(Type::kGrant, s.parts, [&](Writer& w) {
    w.put<uint32_t>(s.flow);
    w.put<uint32_t>(s.number);
    for (int i = 0; i < s.parts; ++i) {
      const GrantPart& p = s.part[i];
      w.put<uint32_t>(p.region);
      w.put<uint32_t>(p.epoch);
      w.put<uint64_t>(p.offset);
      w.put<uint64_t>(p.size);
      w.put<int32_t>(p.tag);
      w.put<uint32_t>(0);
    }
  });
}

bool decode(Reader& r, uint8_t count, Grant* out) {
  out->flow = r.get<uint32_t>();
  out->number = r.get<uint32_t>();
  if (count == 0 || count > kMaxParts) return false;
  out->parts = count;
  for (int i = 0; i < count; ++i) {
    GrantPart& p = out->part[i];
    p.region = r.get<uint32_t>();
    p.epoch = r.get<uint32_t>();
    p.offset = r.get<uint64_t>();
    p.size = r.get<uint64_t>();
    p.tag = r.get<int32_t>();
    r.skip(4);
    if (p.offset + p.size < p.offset) return false;
  }
  return !r.failed();
}

bool ControlWriter::add(const GrantsSeen& s) {
  return statement(Type::kGrantsSeen, 0, [&](Writer& w) {
    w.put<uint32_t>(s.flow);
    w.put<uint32_t>(s.below);
  });
}

bool decode(Reader& r, uint8_t, GrantsSeen* out) {
  out->flow = r.get<uint32_t>();
  out->below = r.get<uint32_t>();
  return !r.failed();
}

bool ControlWriter::add(const Record& s) {
  return statement(Type::kRecord, 0, [&](Writer& w) {
    w.put<uint32_t>(s.flow);
    w.put<uint32_t>(s.number);
    w.put<uint64_t>(s.size);
    w.put<uint32_t>(s.segment_bytes);
    w.put<uint16_t>(s.slot);
    w.put<uint8_t>(s.generation);
    w.put<uint8_t>(s.part);
  });
}

bool decode(Reader& r, uint8_t, Record* out) {
  out->flow = r.get<uint32_t>();
  out->number = r.get<uint32_t>();
  out->size = r.get<uint64_t>();
  out->segment_bytes = r.get<uint32_t>();
  out->slot = r.get<uint16_t>();
  out->generation = r.get<uint8_t>();
  out->part = r.get<uint8_t>();
  return !r.failed() && out->part < kMaxParts && out->segment_bytes != 0 &&
         out->segment_bytes % 128 == 0;
}

bool ControlWriter::add(const PathAck& s) {
  return statement(Type::kPathAck, s.words, [&](Writer& w) {
    w.put<uint16_t>(s.path);
    w.put<uint16_t>(0);
    w.put<uint32_t>(s.epoch);
    w.put<uint64_t>(s.largest);
    w.put<uint32_t>(s.hold_ns);
    w.put<uint32_t>(s.marks);
    for (int i = 0; i < s.words; ++i) w.put<uint64_t>(s.bits[i]);
  });
}

bool decode(Reader& r, uint8_t count, PathAck* out) {
  out->path = r.get<uint16_t>();
  r.skip(2);
  out->epoch = r.get<uint32_t>();
  out->largest = r.get<uint64_t>();
  out->hold_ns = r.get<uint32_t>();
  out->marks = r.get<uint32_t>();
  if (count > kMaxAckWords) return false;
  out->words = count;
  for (int i = 0; i < count; ++i) out->bits[i] = r.get<uint64_t>();
  return !r.failed();
}

bool ControlWriter::add(const MessageAck& s) {
  return statement(Type::kMessageAck, s.words, [&](Writer& w) {
    w.put<uint32_t>(s.flow);
    w.put<uint32_t>(s.number);
    w.put<uint8_t>(s.part);
    w.put<uint8_t>(s.sized ? 1 : 0);
    w.put<uint16_t>(0);
    w.put<uint32_t>(s.base);
    w.put<uint32_t>(s.latest);
    w.put<uint32_t>(s.hold_ns);
    for (int i = 0; i < s.words; ++i) w.put<uint64_t>(s.bits[i]);
  });
}

bool decode(Reader& r, uint8_t count, MessageAck* out) {
  out->flow = r.get<uint32_t>();
  out->number = r.get<uint32_t>();
  out->part = r.get<uint8_t>();
  out->sized = r.get<uint8_t>() != 0;
  r.skip(2);
  out->base = r.get<uint32_t>();
  out->latest = r.get<uint32_t>();
  out->hold_ns = r.get<uint32_t>();
  if (count > kMaxAckWords || out->part >= kMaxParts) return false;
  out->words = count;
  for (int i = 0; i < count; ++i) out->bits[i] = r.get<uint64_t>();
  return !r.failed();
}

bool ControlWriter::add(const FlowAck& s) {
  return statement(Type::kFlowAck, 0, [&](Writer& w) {
    w.put<uint32_t>(s.flow);
    w.put<uint32_t>(s.below);
  });
}

bool decode(Reader& r, uint8_t, FlowAck* out) {
  out->flow = r.get<uint32_t>();
  out->below = r.get<uint32_t>();
  return !r.failed();
}

bool ControlWriter::add(const Query& s) {
  return statement(Type::kQuery, 0, [&](Writer& w) {
    w.put<uint32_t>(s.flow);
    w.put<uint32_t>(s.number);
    w.put<uint32_t>(s.part);
  });
}

bool decode(Reader& r, uint8_t, Query* out) {
  out->flow = r.get<uint32_t>();
  out->number = r.get<uint32_t>();
  out->part = r.get<uint32_t>();
  return !r.failed() && out->part < kMaxParts;
}

bool ControlWriter::add(const PathState& s) {
  return statement(Type::kPathState, 0, [&](Writer& w) {
    w.put<uint16_t>(s.path);
    w.put<uint8_t>(static_cast<uint8_t>(s.phase));
    w.put<uint8_t>(0);
    w.put<uint32_t>(s.epoch);
    w.put<uint64_t>(s.address);
  });
}

bool decode(Reader& r, uint8_t, PathState* out) {
  out->path = r.get<uint16_t>();
  const auto phase = r.get<uint8_t>();
  r.skip(1);
  out->epoch = r.get<uint32_t>();
  out->address = r.get<uint64_t>();
  out->phase = static_cast<PathPhase>(phase);
  return !r.failed() && phase >= 1 && phase <= 3;
}

bool ControlWriter::add(const FlowState& s) {
  return statement(Type::kFlowState, 0, [&](Writer& w) {
    w.put<uint32_t>(s.flow);
    w.put<uint8_t>(static_cast<uint8_t>(s.role));
    w.put<uint8_t>(static_cast<uint8_t>(s.phase));
    w.put<uint16_t>(0);
    w.put<uint32_t>(s.code);
    w.put<uint32_t>(s.below);
  });
}

bool decode(Reader& r, uint8_t, FlowState* out) {
  out->flow = r.get<uint32_t>();
  const auto role = r.get<uint8_t>();
  const auto phase = r.get<uint8_t>();
  r.skip(2);
  out->code = r.get<uint32_t>();
  out->below = r.get<uint32_t>();
  out->role = static_cast<FlowRole>(role);
  out->phase = static_cast<FlowPhase>(phase);
  return !r.failed() && role >= 1 && role <= 2 && phase >= 1 && phase <= 3;
}

bool ControlWriter::add(const FlowStateSeen& s) {
  return statement(Type::kFlowStateSeen, 0, [&](Writer& w) {
    w.put<uint32_t>(s.flow);
    w.put<uint8_t>(static_cast<uint8_t>(s.role));
    w.put<uint8_t>(static_cast<uint8_t>(s.phase));
    w.put<uint16_t>(0);
  });
}

bool decode(Reader& r, uint8_t, FlowStateSeen* out) {
  out->flow = r.get<uint32_t>();
  const auto role = r.get<uint8_t>();
  const auto phase = r.get<uint8_t>();
  r.skip(2);
  out->role = static_cast<FlowRole>(role);
  out->phase = static_cast<FlowPhase>(phase);
  return !r.failed() && role >= 1 && role <= 2 && phase >= 1 && phase <= 3;
}

bool ControlWriter::add(const Credit& s) {
  return statement(Type::kCredit, 0, [&](Writer& w) {
    w.put<uint32_t>(s.flow);
    w.put<uint32_t>(0);
    w.put<uint64_t>(s.bytes);
  });
}

bool decode(Reader& r, uint8_t, Credit* out) {
  out->flow = r.get<uint32_t>();
  r.skip(4);
  out->bytes = r.get<uint64_t>();
  return !r.failed();
}

bool ControlWriter::add(const OneSided& s) {
  return statement(Type::kOneSided, 0, [&](Writer& w) {
    w.put<uint64_t>(s.operation);
    w.put<uint8_t>(static_cast<uint8_t>(s.kind));
    w.put<uint8_t>(0);
    w.put<uint16_t>(0);
    w.put<uint32_t>(s.region);
    w.put<uint32_t>(s.epoch);
    w.put<uint32_t>(s.remote_region);
    w.put<uint32_t>(s.remote_epoch);
    w.put<uint32_t>(0);
    w.put<uint64_t>(s.offset);
    w.put<uint64_t>(s.remote_offset);
    w.put<uint64_t>(s.size);
  });
}

bool decode(Reader& r, uint8_t, OneSided* out) {
  out->operation = r.get<uint64_t>();
  const auto kind = r.get<uint8_t>();
  r.skip(3);
  out->region = r.get<uint32_t>();
  out->epoch = r.get<uint32_t>();
  out->remote_region = r.get<uint32_t>();
  out->remote_epoch = r.get<uint32_t>();
  r.skip(4);
  out->offset = r.get<uint64_t>();
  out->remote_offset = r.get<uint64_t>();
  out->size = r.get<uint64_t>();
  out->kind = static_cast<OneSidedKind>(kind);
  return !r.failed() && kind >= 1 && kind <= 2 && out->offset + out->size >= out->offset &&
         out->remote_offset + out->size >= out->remote_offset;
}

bool ControlWriter::add(const Ping& s) {
  return statement(Type::kPing, 0, [&](Writer& w) { w.put<uint32_t>(s.sequence); });
}

bool decode(Reader& r, uint8_t, Ping* out) {
  out->sequence = r.get<uint32_t>();
  return !r.failed();
}

bool ControlWriter::add(const Pong& s) {
  return statement(Type::kPong, 0, [&](Writer& w) { w.put<uint32_t>(s.sequence); });
}

bool decode(Reader& r, uint8_t, Pong* out) {
  out->sequence = r.get<uint32_t>();
  return !r.failed();
}

}  // namespace weft::wire
