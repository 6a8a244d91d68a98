// SPDX-License-Identifier: Apache-2.0
// The statements of control packets: each keeps the bounds of its table, and what was understood,
// said again, is understood as the same.
#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "transport/wire/control.h"

namespace weft::fuzz {
namespace {

using namespace wire;

template <class E>
bool within(E value, int low, int high) {
  return static_cast<int>(value) >= low && static_cast<int>(value) <= high;
}

template <class S>
bool sound(const S&) {
  return true;
}
bool sound(const Region& s) { return s.rails <= kMaxRails && s.base + s.length >= s.base; }
bool sound(const Grant& s) {
  const auto fits = [](const GrantPart& p) { return p.offset + p.size >= p.offset; };
  return s.parts >= 1 && s.parts <= kMaxParts &&
         std::all_of(s.part.begin(), s.part.begin() + s.parts, fits);
}
bool sound(const Record& s) {
  return s.part < kMaxParts && s.segment_bytes >= 128 && s.segment_bytes % 128 == 0;
}
bool sound(const PathAck& s) { return s.words <= kMaxAckWords; }
bool sound(const MessageAck& s) { return s.words <= kMaxAckWords && s.part < kMaxParts; }
bool sound(const Query& s) { return s.part < kMaxParts; }
bool sound(const PathState& s) { return within(s.phase, 1, 3); }
bool sound(const FlowState& s) { return within(s.role, 1, 2) && within(s.phase, 1, 3); }
bool sound(const FlowStateSeen& s) { return within(s.role, 1, 2) && within(s.phase, 1, 3); }
bool sound(const OneSided& s) {
  return within(s.kind, 1, 2) && s.offset + s.size >= s.offset &&
         s.remote_offset + s.size >= s.remote_offset;
}

// Says what it hears.
struct Echo {
  explicit Echo(size_t room) : packet(kControlHeaderBytes + room), writer(packet) {}

  template <class S>
  void on(const S& statement) {
    promise(sound(statement), "a statement keeps the bounds of its table");
    promise(writer.add(statement), "a statement is no longer said again than heard");
    ++heard;
  }

  std::vector<std::byte> packet;
  ControlWriter writer;
  size_t heard = 0;
};

}  // namespace

bool feed(std::span<const std::byte> input) {
  Echo first(input.size());
  const bool whole = read_statements(input, first);
  const auto said = first.writer.statements();
  promise(said.size() <= input.size(), "nothing is made up");
  Echo second(said.size());
  promise(read_statements(said, second), "what we say is understood");
  promise(second.heard == first.heard, "every statement is understood again");
  promise(std::ranges::equal(second.writer.statements(), said), "and as the same");
  return whole && first.heard > 0;
}

}  // namespace weft::fuzz
