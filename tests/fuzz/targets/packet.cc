// SPDX-License-Identifier: Apache-2.0
// The headers of datagrams: what is accepted agrees with the datagram's own length, and encodes
// back to the same bytes, reserved ones aside.
#include <algorithm>
#include <array>

#include "tests/fuzz/fuzz.h"
#include "transport/wire/packet.h"

namespace weft::fuzz {
namespace {

using namespace wire;

template <size_t kBytes>
void expect_same(std::span<const std::byte> input, const std::array<std::byte, kBytes>& again,
                 size_t reserved_from, size_t reserved_bytes) {
  const auto differs = [&](size_t i) {
    return input[i] != again[i] && (i < reserved_from || i >= reserved_from + reserved_bytes);
  };
  for (size_t i = 0; i < kBytes; ++i) promise(!differs(i), "a header encodes back to its bytes");
}

void check_data(std::span<const std::byte> input, bool ours, const CommonHeader& common) {
  DataHeader h;
  if (!decode_data(input, &h)) return;
  promise(input.size() == kDataHeaderBytes + h.payload_bytes, "a payload is what follows");
  promise(h.segment_bytes > 0 && h.segment_bytes % 128 == 0, "segments are whole lines");
  promise(h.payload_bytes <= h.segment_bytes, "a payload is at most a segment");
  const uint64_t offset = uint64_t{h.segment} * h.segment_bytes;
  promise(offset <= h.message_bytes && h.payload_bytes <= h.message_bytes - offset,
          "a segment lies inside its message");
  std::array<std::byte, kDataHeaderBytes> again;
  promise(encode_data(again, common.to, h) == again.size(), "a data header has 64 bytes");
  if (ours && common.kind == Kind::kData) expect_same(input, again, 56, 8);
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  CommonHeader common;
  const bool ours = decode_common(input, &common);
  check_data(input, ours, common);
  ProbeHeader probe;
  if (decode_probe(input, &probe)) {
    promise(input.size() == kProbeBytes, "a probe has 32 bytes");
    std::array<std::byte, kProbeBytes> again;
    encode_probe(again, common.to, probe);
    if (ours && common.kind == Kind::kProbe) expect_same(input, again, 27, 5);
  }
  ControlHeader control;
  if (decode_control(input, &control)) {
    promise(input.size() == kControlHeaderBytes + control.statement_bytes,
            "statements are what follows");
    std::array<std::byte, kControlHeaderBytes> again;
    encode_control(again, common.to, control);
    if (ours && common.kind == Kind::kControl) expect_same(input, again, 29, 1);
  }
  return ours;
}

}  // namespace weft::fuzz
