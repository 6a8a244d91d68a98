// SPDX-License-Identifier: Apache-2.0
// The out-of-band stream, over a socket, in pieces as the network makes them: the same frames come
// out as when all bytes are there at once, and what is no frame ends the stream. The first byte of
// the input says how long the pieces are.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "multipath/endpoint/oob_stream.h"
#include "tests/fuzz/fuzz.h"

namespace weft::fuzz {
namespace {

constexpr size_t kMostBytes = 64 << 10;  // less than the socket holds

struct Whole {
  uint8_t version, type;
  std::vector<std::byte> body;
  bool operator==(const Whole&) const = default;
};

// What is to come out. `broken`: then bytes come that are no frame.
std::vector<Whole> frames_of(std::span<const std::byte> bytes, bool* broken) {
  std::vector<Whole> out;
  wire::FrameHeader header;
  while (bytes.size() >= wire::kFrameHeaderBytes) {
    *broken = !wire::decode_frame_header(bytes, &header);
    bytes = bytes.subspan(wire::kFrameHeaderBytes);
    if (*broken || bytes.size() < header.body_bytes) return out;
    const auto body = bytes.first(header.body_bytes);
    out.push_back({header.version, header.type, {body.begin(), body.end()}});
    bytes = bytes.subspan(header.body_bytes);
  }
  return out;
}

void drain(OobStream& stream, std::vector<Whole>* out) {
  for (int i = 0; i < 8 && !stream.ended(); ++i) {
    const bool more = stream.fill();
    Frame frame;
    while (stream.next_frame(&frame)) {
      promise(frame.body.size() <= wire::kMaxFrameBody, "a body is bounded");
      out->push_back({frame.version, frame.type, {frame.body.begin(), frame.body.end()}});
    }
    if (!more) return;
  }
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  if (input.empty() || input.size() > kMostBytes) return false;
  const size_t piece = 1 + static_cast<size_t>(input[0]) * 16;
  input = input.subspan(1);

  int ends[2];
  promise(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
          "a pair of sockets can be made");
  const FileDescriptor peer(ends[1]);
  const auto stream =
      OobStream::adopt(FileDescriptor(ends[0]), SocketAddress(IpAddress::v4(127, 0, 0, 1), 1), {});
  bool broken = false;
  const std::vector<Whole> expected = frames_of(input, &broken);
  std::vector<Whole> seen;
  for (size_t at = 0; at < input.size() && !stream->ended(); at += piece) {
    const auto part = input.subspan(at, std::min(piece, input.size() - at));
    promise(::send(peer.get(), part.data(), part.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(part.size()),
            "the socket takes a piece");
    drain(*stream, &seen);
  }
  promise(seen == expected, "the frames that come out are those that went in");
  promise(stream->ended() == broken, "a stream ends where its bytes are no frame");
  return !expected.empty();
}

}  // namespace weft::fuzz
