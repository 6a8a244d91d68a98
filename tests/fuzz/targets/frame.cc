// SPDX-License-Identifier: Apache-2.0
// Frames of the out-of-band stream, header and body: bounds, and that what was understood is
// understood as the same when it is said again.
#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "transport/base/post.h"
#include "transport/wire/handshake.h"

namespace weft::fuzz {
namespace {

using namespace wire;

using Bytes = std::vector<std::byte>;

void check(const Introduction& self) {
  promise(!self.fabric.empty() && self.fabric.size() <= kMaxFabricName, "a fabric has a name");
  promise(!has_control(self.fabric), "a fabric's name can be shown");
  promise(self.link_address.size() <= kMaxHandshakeAddress, "a link address is bounded");
  promise(self.segment_bytes > 0 && self.segment_bytes % 128 == 0, "segments are whole lines");
  promise(self.paths >= 1 && self.paths <= kMaxPaths, "paths are in range");
}

// What a body of that type means, as a frame of our own; nothing when it is not understood.
bool say_again(uint8_t type, std::span<const std::byte> body, Bytes* out) {
  Hello hello;
  Cookie cookie;
  Introduction self;
  Refused refused;
  Open open;
  Opened opened;
  Address address;
  switch (static_cast<FrameType>(type)) {
    case FrameType::kHello:
      if (!decode_hello(body, &hello)) return false;
      promise(decode_hello_cookie(body, &cookie) && cookie == hello.cookie,
              "a hello's cookie is read alike");
      check(hello.self);
      return append_hello(out, hello), true;
    case FrameType::kWelcome:
      if (!decode_welcome(body, &self)) return false;
      check(self);
      return append_welcome(out, self), true;
    case FrameType::kRefused:
      if (!decode_refused(body, &refused)) return false;
      promise(refused.words.size() <= kMaxWords && !has_control(refused.words),
              "a refusal can be shown");
      promise(refused.code >= Refusal::kSpeech && refused.code <= Refusal::kFailed,
              "a refusal is one that we know");
      return append_refused(out, refused.request, refused.code, refused.words), true;
    case FrameType::kOpen:
      if (!decode_open(body, &open)) return false;
      promise(open.request != kTheHello, "a request is not mistaken for the hello");
      return append_open(out, open), true;
    case FrameType::kOpened:
      return decode_opened(body, &opened) && (append_opened(out, opened), true);
    case FrameType::kResume:
      return decode_resume(body, &address) && (append_resume(out, address), true);
    default: return false;
  }
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  FrameHeader header;
  if (!decode_frame_header(input, &header)) return false;
  promise(header.body_bytes <= kMaxFrameBody, "a body is bounded");
  const auto body = input.subspan(kFrameHeaderBytes);
  Bytes once, twice;
  if (!say_again(header.type, body, &once)) return false;
  promise(once.size() <= input.size(), "nothing is made up");
  FrameHeader ours;
  promise(decode_frame_header(once, &ours) && ours.type == header.type &&
              ours.body_bytes == once.size() - kFrameHeaderBytes,
          "our own frames are understood");
  promise(say_again(ours.type, std::span(once).subspan(kFrameHeaderBytes), &twice) && once == twice,
          "and as the same");
  return true;
}

}  // namespace weft::fuzz
