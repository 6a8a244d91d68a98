// SPDX-License-Identifier: Apache-2.0
// What lands on a placing fabric, where only 32 bits of immediate data say what it was: short
// messages by flow, number and part, long ones by a slot with a record, probes by sequence.
#include <algorithm>

#include "multipath/connection/receiver.h"

namespace weft {

void Receiver::on_landing(Time now, PathIndex path, uint32_t epoch, uint32_t immediate,
                          uint32_t bytes) {
  if (path >= kMaxPaths) return;
  const wire::Immediate imm = wire::decode_immediate(immediate);
  if (imm.kind == wire::ImmediateKind::kShort) return land_short(now, imm, bytes);
  if (imm.kind == wire::ImmediateKind::kLong) return land_long(now, imm, bytes);
  PathArrivals& p = paths_[path];
  p.epoch = epoch;
  p.largest = imm.sequence;
  p.largest_at = now;
  ++stamp_;
  if (!p.due) {
    p.due = true;
    paths_due_.push_back(path);
  }
  owe_ack(now, kAtOnce);
}

void Receiver::land_short(Time now, const wire::Immediate& imm, uint32_t bytes) {
  ReceiveFlowState* f = flow_at(imm.flow);
  if (!f) return;
  const auto number = static_cast<uint32_t>(wire::widen(imm.number, 9, f->complete_below));
  PartState* p = open_part(*f, number, imm.part);
  if (!p || !size_part(*p, bytes, config_.peer_segment_bytes)) return;
  arrive(now, *p, 0);
}

void Receiver::land_long(Time now, const wire::Immediate& imm, uint32_t bytes) {
  if (slots_.empty()) slots_.resize(wire::kImmediateSlots);
  Slot& slot = slots_[imm.slot];
  if (slot.generation != imm.generation) {
    // The sender reuses a slot only when no copy of its last message lives: what we knew of it is
    // over.
    slot = Slot{};
    slot.generation = imm.generation;
  }
  ++stamp_;
  if (!slot.known) {
    if (imm.index < 64) slot.early |= uint64_t{1} << imm.index;
    return;
  }
  ReceiveFlowState* f = flow(slot.flow);
  PartState* p = f ? open_part(*f, slot.number, slot.part) : nullptr;
  if (!p || !p->sized) return;
  const uint64_t segment = wire::widen(imm.index, 16, p->arrived.base());
  if (segment >= p->segments) return;
  const uint64_t offset = segment * p->segment_bytes;
  if (bytes != std::min<uint64_t>(p->segment_bytes, p->bytes - offset)) return;
  arrive(now, *p, static_cast<uint32_t>(segment));
}

}  // namespace weft
