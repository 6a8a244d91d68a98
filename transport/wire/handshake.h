// SPDX-License-Identifier: Apache-2.0
// What two endpoints say on the out-of-band TCP stream of a connection, and what a listener's
// handle holds, byte by byte. All integers are little-endian; "reserved" is sent as 0 and ignored.
//
// Handle (64 bytes of the 128 that a caller carries for us; the rest is 0 and free for the caller):
//
//    0  u32  magic        0x48464557 ("WEFH")
//    4  u8   version      1
//    5  u8   address family: 4 or 6
//    6  u16  TCP port
//    8  u8 x 16  address, IPv4 in the first four
//   24  u64  incarnation of the endpoint
//   32  u64  context of the listener
//   40  u32  device
//   44  u8 x 16  cookie of the listener
//   60  u16  UDP port for size probes; 0: none
//   62  u16  reserved
//
// Frame: a header of 12 bytes, which no version may change, then the body:
//
//    0  u32  magic        0x4f464557 ("WEFO")
//    4  u8   version      1
//    5  u8   type
//    6  u16  reserved
//    8  u32  bytes of the body, at most 8192
//
//   1 hello      the connector's first: cookie u8 x 16 (first in every version, so that a mismatch
//                can be told apart from a stranger); whom it means: incarnation u64, context u64,
//                device u32, reserved u32; then an introduction
//   2 welcome    the answer: an introduction
//   3 refused    request u32 (all ones: the hello), code u8, reserved u8, length u16, words (at
//                most 512 bytes)
//   4 open       request u32, cookie u8 x 16 of the listener that is to accept one more flow
//   5 opened     request u32, flow u32
//   6 last word  statements as in control packets (control.h)
//   7 goodbye    nothing: the connection is over, and its last word was said
//   8 resume     a first frame too: connection u32, reserved u32, token u64 under which its
//                receiver is addressed; this stream is to take the place of the connection's own
//   9 resumed    nothing: it does
//
// Introduction:
//
//    0  u64  incarnation
//    8  u64  context
//   16  u32  device
//   20  i32  traffic class
//   24  u32  connection, under which the sender of this wants to be addressed
//   28  u32  reserved
//   32  u64  token, the secret that goes with it
//   40  u32  largest segment, a multiple of 128
//   44  u16  paths, 1 to 256
//   46  u8   offloads: 1 places, 2 reliable, 4 ordered path, 8 timestamps, 16 ecn
//   47  u8   length of the fabric's name, 1 to 31
//   48  u16  length of the link address, at most 4096
//   50  u16  reserved
//   52  ...  name, link address
//
// Size probe, a UDP datagram as long as the one it stands for; the peer returns it at that length:
//
//    0  u32  magic        0x50464557 ("WEFP")
//    4  u8   version      1
//    5  u8   1 on its way, 2 on its way back
//    6  u16  reserved
//    8  u8 x 16  cookie of the listener
//   24  u64  nonce, the prober's own; the peer's socket (nonce mod 8) returns it
//   32  u32  bytes of the whole datagram
//   36  ...  zeros
//
// Decoders check every length and range that can be judged without a connection; bytes past the
// fields they know are ignored, so that a version may grow. Pure: no socket, no clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/ip_address.h"
#include "transport/base/offloads.h"
#include "transport/wire/packet.h"

namespace weft::wire {

inline constexpr size_t kHandleBytes = 64;
inline constexpr uint8_t kHandshakeVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 12;
inline constexpr size_t kMaxFrameBody = 8192;
inline constexpr size_t kMaxFabricName = 31;
inline constexpr size_t kMaxHandshakeAddress = 4096;
inline constexpr size_t kMaxWords = 512;
inline constexpr uint32_t kTheHello = 0xffffffffu;

using Cookie = std::array<std::byte, 16>;

struct ListenHandle {
  uint8_t version = kHandshakeVersion;
  IpAddress address;
  uint16_t port = 0;
  uint64_t incarnation = 0;
  uint64_t context = 0;
  uint32_t device = 0;
  Cookie cookie{};
  uint16_t probe_port = 0;
};

void encode_handle(std::span<std::byte, kHandleBytes> out, const ListenHandle& handle);
// False: not a handle of ours, or of a version whose layout we do not know (out->version says
// which).
bool decode_handle(std::span<const std::byte> bytes, ListenHandle* out);

inline constexpr size_t kSizeProbeBytes = 36;

struct SizeProbe {
  bool back = false;
  Cookie cookie{};
  uint64_t nonce = 0;
  uint32_t bytes = 0;
};
// Precondition: the span has kSizeProbeBytes.
void encode_size_probe(std::span<std::byte> out, const SizeProbe& probe);
// False: not ours, or not as long as it says.
bool decode_size_probe(std::span<const std::byte> datagram, SizeProbe* out);

enum class FrameType : uint8_t {
  kHello = 1,
  kWelcome,
  kRefused,
  kOpen,
  kOpened,
  kLastWord,
  kGoodbye,
  kResume,
  kResumed,
};

struct FrameHeader {
  uint8_t version = kHandshakeVersion;
  uint8_t type = 0;  // may be one that we do not know
  uint32_t body_bytes = 0;
};
// False: these are not our bytes. Precondition for judging: kFrameHeaderBytes are there.
bool decode_frame_header(std::span<const std::byte> bytes, FrameHeader* out);

struct Introduction {
  uint64_t incarnation = 0;
  uint64_t context = 0;
  uint32_t device = 0;
  int32_t traffic_class = 0;
  Address address;  // under which we want to be reached
  uint32_t segment_bytes = 0;
  uint16_t paths = 0;
  Offloads offloads;
  std::string fabric;
  std::vector<std::byte> link_address;
};

struct Hello {
  Cookie cookie{};
  uint64_t to_incarnation = 0;
  uint64_t to_context = 0;
  uint32_t to_device = 0;
  Introduction self;
};

enum class Refusal : uint8_t {
  kSpeech = 1,  // we do not speak the same
  kFabric,      // the ends use different fabrics
  kNoListener,  // nobody listens there (any more)
  kCrossed,     // both ends began at once, and the other attempt goes on: wait for it
  kFull,
  kFailed,  // the words say what
};

struct Refused {
  uint32_t request = kTheHello;
  Refusal code = Refusal::kFailed;
  std::string words;  // printable when decoded, whatever came
};
struct Open {
  uint32_t request = 0;
  Cookie cookie{};
};
struct Opened {
  uint32_t request = 0;
  uint32_t flow = 0;
};

// Each appends one whole frame to `out`.
void append_hello(std::vector<std::byte>* out, const Hello& hello);
void append_welcome(std::vector<std::byte>* out, const Introduction& self);
void append_refused(std::vector<std::byte>* out, uint32_t request, Refusal code,
                    std::string_view words);
void append_open(std::vector<std::byte>* out, const Open& open);
void append_opened(std::vector<std::byte>* out, const Opened& opened);
// Precondition: statements.size() <= kMaxFrameBody.
void append_last_word(std::vector<std::byte>* out, std::span<const std::byte> statements);
void append_goodbye(std::vector<std::byte>* out);
void append_resume(std::vector<std::byte>* out, const Address& receiver);
void append_resumed(std::vector<std::byte>* out);

// The cookie of a hello of any version; false when the body is too short for one.
bool decode_hello_cookie(std::span<const std::byte> body, Cookie* out);
bool decode_hello(std::span<const std::byte> body, Hello* out);
bool decode_welcome(std::span<const std::byte> body, Introduction* out);
bool decode_refused(std::span<const std::byte> body, Refused* out);
bool decode_open(std::span<const std::byte> body, Open* out);
bool decode_opened(std::span<const std::byte> body, Opened* out);
bool decode_resume(std::span<const std::byte> body, Address* out);

}  // namespace weft::wire
