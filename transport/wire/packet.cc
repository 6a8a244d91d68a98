// SPDX-License-Identifier: Apache-2.0
// Codecs of the fixed headers; the layouts are in packet.h.
#include "transport/wire/packet.h"

#include "transport/base/units.h"
#include "transport/wire/cursor.h"

namespace weft::wire {
namespace {

void put_common(Writer& w, Kind kind, Address to) {
  w.put<uint16_t>(kMagic);
  w.put<uint8_t>(kVersion);
  w.put<uint8_t>(static_cast<uint8_t>(kind));
  w.put<uint32_t>(to.connection);
  w.put<uint64_t>(to.token);
}

// How many segments a message of `bytes` has; an empty one has one, of no bytes.
uint64_t segments_of(uint64_t bytes, uint32_t segment_bytes) {
  return bytes == 0 ? 1 : (bytes - 1) / segment_bytes + 1;
}

// Whether the header's own numbers agree with each other and with the datagram's length.
bool consistent(const DataHeader& h, size_t payload) {
  if (h.payload_bytes != payload) return false;
  if (h.segment_bytes == 0 || h.segment_bytes % kLineBytes != 0) return false;
  const uint64_t count = segments_of(h.message_bytes, h.segment_bytes);
  if (h.segment >= count) return false;
  const uint64_t offset = uint64_t{h.segment} * h.segment_bytes;
  const uint64_t rest = h.message_bytes - offset;
  return h.payload_bytes == (rest < h.segment_bytes ? rest : h.segment_bytes);
}

}  // namespace

size_t encode_data(std::span<std::byte> out, Address to, const DataHeader& h) {
  Writer w(out);
  put_common(w, Kind::kData, to);
  w.put<uint64_t>(h.packet);
  w.put<uint16_t>(h.path);
  w.put<uint8_t>(h.part);
  w.put<uint8_t>(h.rail);
  w.put<uint32_t>(h.flow);
  w.put<uint32_t>(h.number);
  w.put<uint32_t>(h.segment);
  w.put<uint64_t>(h.message_bytes);
  w.put<uint32_t>(h.segment_bytes);
  w.put<uint32_t>(h.payload_bytes);
  w.put<uint64_t>(0);
  return w.size();
}

size_t encode_probe(std::span<std::byte> out, Address to, const ProbeHeader& h) {
  Writer w(out);
  put_common(w, Kind::kProbe, to);
  w.put<uint64_t>(h.packet);
  w.put<uint16_t>(h.path);
  w.put<uint8_t>(h.rail);
  w.put<uint8_t>(0);
  w.put<uint32_t>(0);
  return w.size();
}

size_t encode_control(std::span<std::byte> out, Address to, const ControlHeader& h) {
  Writer w(out);
  put_common(w, Kind::kControl, to);
  w.put<uint64_t>(h.stamp);
  w.put<uint32_t>(h.poll_gap_ns);
  w.put<uint8_t>(h.rail);
  w.put<uint8_t>(0);
  w.put<uint16_t>(h.statement_bytes);
  return w.size();
}

bool decode_common(std::span<const std::byte> datagram, CommonHeader* out) {
  Reader r(datagram);
  const auto magic = r.get<uint16_t>();
  const auto version = r.get<uint8_t>();
  const auto kind = r.get<uint8_t>();
  out->to.connection = r.get<uint32_t>();
  out->to.token = r.get<uint64_t>();
  if (r.failed() || magic != kMagic || version != kVersion || kind < 1 || kind > 3) return false;
  out->kind = static_cast<Kind>(kind);
  return true;
}

bool decode_data(std::span<const std::byte> datagram, DataHeader* out) {
  Reader r(datagram);
  r.skip(kCommonHeaderBytes);
  out->packet = r.get<uint64_t>();
  out->path = r.get<uint16_t>();
  out->part = r.get<uint8_t>();
  out->rail = r.get<uint8_t>();
  out->flow = r.get<uint32_t>();
  out->number = r.get<uint32_t>();
  out->segment = r.get<uint32_t>();
  out->message_bytes = r.get<uint64_t>();
  out->segment_bytes = r.get<uint32_t>();
  out->payload_bytes = r.get<uint32_t>();
  r.skip(8);
  return !r.failed() && consistent(*out, datagram.size() - kDataHeaderBytes);
}

bool decode_probe(std::span<const std::byte> datagram, ProbeHeader* out) {
  Reader r(datagram);
  r.skip(kCommonHeaderBytes);
  out->packet = r.get<uint64_t>();
  out->path = r.get<uint16_t>();
  out->rail = r.get<uint8_t>();
  return datagram.size() == kProbeBytes && !r.failed();
}

bool decode_control(std::span<const std::byte> datagram, ControlHeader* out) {
  Reader r(datagram);
  r.skip(kCommonHeaderBytes);
  out->stamp = r.get<uint64_t>();
  out->poll_gap_ns = r.get<uint32_t>();
  out->rail = r.get<uint8_t>();
  r.skip(1);
  out->statement_bytes = r.get<uint16_t>();
  return !r.failed() && out->statement_bytes == datagram.size() - kControlHeaderBytes;
}

}  // namespace weft::wire
