// SPDX-License-Identifier: Apache-2.0
// The datagrams of Weft, byte by byte. All integers are little-endian; "reserved" is sent as 0 and
// ignored.
//
// Every datagram begins with the common header:
//
//    0  u16  magic      0x4657 ("WF")
//    2  u8   version    1
//    3  u8   kind       1 data, 2 probe, 3 control
//    4  u32  connection the id under which the receiver wants to be addressed
//    8  u64  token      the receiver's secret for this connection; a wrong one is dropped unseen
//
// data (64 bytes, then the payload), on datagram fabrics only:
//
//   16  u64  packet number of the path, never reused, from 1024
//   24  u16  path, as the sender counts its paths
//   26  u8   part of a grouped receive
//   27  u8   rail of the sender
//   28  u32  flow, as its receiver named it
//   32  u32  message number in the flow
//   36  u32  segment of the message, from 0
//   40  u64  message size in bytes
//   48  u32  segment size in bytes, a multiple of 128
//   52  u32  payload bytes that follow (0 for an empty message)
//   56  u64  reserved
//
// probe (32 bytes), on datagram fabrics; on placing fabrics a zero-length write with a probe
// immediate:
//
//   16  u64  packet number of the path, in the same numbering as data
//   24  u16  path
//   26  u8   rail of the sender
//   27  u8   reserved
//   28  u32  reserved
//
// control (32 bytes, then statements: control.h), on every fabric:
//
//   16  u64  stamp     the sender's count of its events; statements describe its state then
//   24  u32  poll gap  nanoseconds for which the sender had not polled before it saw what it
//                      reports
//   28  u8   rail of the sender
//   29  u8   reserved
//   30  u16  bytes of statements that follow
//
// Placing fabrics carry data as writes with 32 bits of immediate data: immediate.h. The out-of-band
// stream has frames of its own: handshake.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::wire {

inline constexpr uint16_t kMagic = 0x4657;
inline constexpr uint8_t kVersion = 1;
inline constexpr size_t kCommonHeaderBytes = 16;
inline constexpr size_t kDataHeaderBytes = 64;
inline constexpr size_t kProbeBytes = 32;
inline constexpr size_t kControlHeaderBytes = 32;

// The first packet number of a path: high enough that an ack's bit window never reaches below 0.
inline constexpr uint64_t kFirstPacket = 1024;

enum class Kind : uint8_t { kData = 1, kProbe = 2, kControl = 3 };

// Under what name and secret a connection is reached.
struct Address {
  uint32_t connection = 0;
  uint64_t token = 0;
  bool operator==(const Address&) const = default;
};

struct CommonHeader {
  Kind kind = Kind::kData;
  Address to;
};

struct DataHeader {
  uint64_t packet = 0;
  uint16_t path = 0;
  uint8_t part = 0;
  uint8_t rail = 0;
  uint32_t flow = 0;
  uint32_t number = 0;
  uint32_t segment = 0;
  uint64_t message_bytes = 0;
  uint32_t segment_bytes = 0;
  uint32_t payload_bytes = 0;
};

struct ProbeHeader {
  uint64_t packet = 0;
  uint16_t path = 0;
  uint8_t rail = 0;
};

struct ControlHeader {
  uint64_t stamp = 0;
  uint32_t poll_gap_ns = 0;
  uint8_t rail = 0;
  uint16_t statement_bytes = 0;
};

// Encoders write exactly k...Bytes; precondition: the span has room. They return the bytes written.
size_t encode_data(std::span<std::byte> out, Address to, const DataHeader& header);
size_t encode_probe(std::span<std::byte> out, Address to, const ProbeHeader& header);
size_t encode_control(std::span<std::byte> out, Address to, const ControlHeader& header);

// Decoders take a whole datagram and return false for anything that is not, in every field that can
// be judged without a connection, what the tables above say. They never read past the span.
bool decode_common(std::span<const std::byte> datagram, CommonHeader* out);
bool decode_data(std::span<const std::byte> datagram, DataHeader* out);
bool decode_probe(std::span<const std::byte> datagram, ProbeHeader* out);
bool decode_control(std::span<const std::byte> datagram, ControlHeader* out);

}  // namespace weft::wire
