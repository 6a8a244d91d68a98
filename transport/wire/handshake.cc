// SPDX-License-Identifier: Apache-2.0
// Frames and handles: encoding with the cursors, decoding with every bound checked (handshake.h).
#include "transport/wire/handshake.h"

#include <algorithm>
#include <cstring>

#include "transport/base/post.h"
#include "transport/base/units.h"
#include "transport/wire/cursor.h"

namespace weft::wire {
namespace {

constexpr uint32_t kHandleMagic = 0x48464557;
constexpr uint32_t kFrameMagic = 0x4f464557;
constexpr uint32_t kProbeMagic = 0x50464557;
constexpr uint8_t kOnItsWay = 1;
constexpr uint8_t kOnItsWayBack = 2;
constexpr uint8_t kFamilyIpv4 = 4;
constexpr uint8_t kFamilyIpv6 = 6;

// Longest body that we write ourselves: a hello with the largest name and address.
constexpr size_t kMaxOwnBody = 128 + kMaxFabricName + kMaxHandshakeAddress;
static_assert(kMaxOwnBody <= kMaxFrameBody);

void append_frame(std::vector<std::byte>* out, FrameType type, std::span<const std::byte> body) {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  Writer w(bytes);
  w.put<uint32_t>(kFrameMagic);
  w.put<uint8_t>(kHandshakeVersion);
  w.put<uint8_t>(static_cast<uint8_t>(type));
  w.put<uint16_t>(0);
  w.put<uint32_t>(static_cast<uint32_t>(body.size()));
  out->insert(out->end(), bytes.begin(), bytes.end());
  out->insert(out->end(), body.begin(), body.end());
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

uint8_t encode_offloads(Offloads o) {
  return static_cast<uint8_t>(o.places | o.reliable << 1 | o.ordered_path << 2 | o.timestamps << 3 |
                              o.ecn << 4);
}

Offloads decode_offloads(uint8_t bits) {
  Offloads o;
  o.places = bits & 1;
  o.reliable = bits & 2;
  o.ordered_path = bits & 4;
  o.timestamps = bits & 8;
  o.ecn = bits & 16;
  return o;
}

void put_introduction(Writer& w, const Introduction& self) {
  const std::string_view name = std::string_view(self.fabric).substr(0, kMaxFabricName);
  const auto address =
      std::span(self.link_address).first(std::min(self.link_address.size(), kMaxHandshakeAddress));
  w.put<uint64_t>(self.incarnation);
  w.put<uint64_t>(self.context);
  w.put<uint32_t>(self.device);
  w.put<int32_t>(self.traffic_class);
  w.put<uint32_t>(self.address.connection);
  w.put<uint32_t>(0);
  w.put<uint64_t>(self.address.token);
  w.put<uint32_t>(self.segment_bytes);
  w.put<uint16_t>(self.paths);
  w.put<uint8_t>(encode_offloads(self.offloads));
  w.put<uint8_t>(static_cast<uint8_t>(name.size()));
  w.put<uint16_t>(static_cast<uint16_t>(address.size()));
  w.put<uint16_t>(0);
  w.put_bytes(bytes_of(name));
  w.put_bytes(address);
}

bool printable(char c) { return c >= 0x20 && c < 0x7f; }

// Text from outside ends in logs and in error messages: nothing but printable ASCII gets through.
std::string clean_text(std::span<const std::byte> bytes) {
  std::string text(bytes.size(), '?');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = static_cast<char>(bytes[i]);
    if (printable(c)) text[i] = c;
  }
  return text;
}

bool get_introduction(Reader& r, Introduction* out) {
  out->incarnation = r.get<uint64_t>();
  out->context = r.get<uint64_t>();
  out->device = r.get<uint32_t>();
  out->traffic_class = r.get<int32_t>();
  out->address.connection = r.get<uint32_t>();
  r.skip(4);
  out->address.token = r.get<uint64_t>();
  out->segment_bytes = r.get<uint32_t>();
  out->paths = r.get<uint16_t>();
  out->offloads = decode_offloads(r.get<uint8_t>());
  const auto name_bytes = r.get<uint8_t>();
  const auto address_bytes = r.get<uint16_t>();
  r.skip(2);
  if (r.failed() || name_bytes == 0 || name_bytes > kMaxFabricName) return false;
  if (address_bytes > kMaxHandshakeAddress) return false;
  if (out->segment_bytes == 0 || out->segment_bytes % kLineBytes != 0) return false;
  if (out->paths == 0 || out->paths > kMaxPaths) return false;
  out->fabric = clean_text(r.get_bytes(name_bytes));
  const auto address = r.get_bytes(address_bytes);
  out->link_address.assign(address.begin(), address.end());
  return !r.failed();
}

void get_cookie(Reader& r, Cookie* out) {
  const auto bytes = r.get_bytes(out->size());
  if (bytes.size() == out->size()) std::memcpy(out->data(), bytes.data(), out->size());
}

}  // namespace

void encode_handle(std::span<std::byte, kHandleBytes> out, const ListenHandle& handle) {
  std::fill(out.begin(), out.end(), std::byte{0});
  Writer w(out);
  w.put<uint32_t>(kHandleMagic);
  w.put<uint8_t>(handle.version);
  w.put<uint8_t>(handle.address.ipv6 ? kFamilyIpv6 : kFamilyIpv4);
  w.put<uint16_t>(handle.port);
  w.put_bytes(std::as_bytes(std::span(handle.address.bytes)));
  w.put<uint64_t>(handle.incarnation);
  w.put<uint64_t>(handle.context);
  w.put<uint32_t>(handle.device);
  w.put_bytes(handle.cookie);
  w.put<uint16_t>(handle.probe_port);
}

bool decode_handle(std::span<const std::byte> bytes, ListenHandle* out) {
  *out = ListenHandle{};
  Reader r(bytes);
  const auto magic = r.get<uint32_t>();
  const auto version = r.get<uint8_t>();
  const auto family = r.get<uint8_t>();
  out->port = r.get<uint16_t>();
  const auto address = r.get_bytes(16);
  out->incarnation = r.get<uint64_t>();
  out->context = r.get<uint64_t>();
  out->device = r.get<uint32_t>();
  get_cookie(r, &out->cookie);
  out->probe_port = r.get<uint16_t>();
  if (r.failed() || magic != kHandleMagic) return false;
  out->version = version;
  if (version != kHandshakeVersion || out->port == 0) return false;
  if (family != kFamilyIpv4 && family != kFamilyIpv6) return false;
  out->address.ipv6 = family == kFamilyIpv6;
  std::memcpy(out->address.bytes.data(), address.data(), out->address.size());
  return out->address.unicast();
}

void encode_size_probe(std::span<std::byte> out, const SizeProbe& probe) {
  Writer w(out);
  w.put<uint32_t>(kProbeMagic);
  w.put<uint8_t>(kHandshakeVersion);
  w.put<uint8_t>(probe.back ? kOnItsWayBack : kOnItsWay);
  w.put<uint16_t>(0);
  w.put_bytes(probe.cookie);
  w.put<uint64_t>(probe.nonce);
  w.put<uint32_t>(probe.bytes);
}

bool decode_size_probe(std::span<const std::byte> datagram, SizeProbe* out) {
  Reader r(datagram);
  const auto magic = r.get<uint32_t>();
  const auto version = r.get<uint8_t>();
  const auto way = r.get<uint8_t>();
  r.skip(2);
  get_cookie(r, &out->cookie);
  out->nonce = r.get<uint64_t>();
  out->bytes = r.get<uint32_t>();
  out->back = way == kOnItsWayBack;
  return !r.failed() && magic == kProbeMagic && version == kHandshakeVersion &&
         (way == kOnItsWay || way == kOnItsWayBack) && out->bytes == datagram.size();
}

bool decode_frame_header(std::span<const std::byte> bytes, FrameHeader* out) {
  Reader r(bytes);
  const auto magic = r.get<uint32_t>();
  out->version = r.get<uint8_t>();
  out->type = r.get<uint8_t>();
  r.skip(2);
  out->body_bytes = r.get<uint32_t>();
  return !r.failed() && magic == kFrameMagic && out->body_bytes <= kMaxFrameBody;
}

void append_hello(std::vector<std::byte>* out, const Hello& hello) {
  std::array<std::byte, kMaxOwnBody> body;
  Writer w(body);
  w.put_bytes(hello.cookie);
  w.put<uint64_t>(hello.to_incarnation);
  w.put<uint64_t>(hello.to_context);
  w.put<uint32_t>(hello.to_device);
  w.put<uint32_t>(0);
  put_introduction(w, hello.self);
  append_frame(out, FrameType::kHello, std::span(body).first(w.size()));
}

void append_welcome(std::vector<std::byte>* out, const Introduction& self) {
  std::array<std::byte, kMaxOwnBody> body;
  Writer w(body);
  put_introduction(w, self);
  append_frame(out, FrameType::kWelcome, std::span(body).first(w.size()));
}

void append_refused(std::vector<std::byte>* out, uint32_t request, Refusal code,
                    std::string_view words) {
  words = words.substr(0, kMaxWords);
  std::array<std::byte, 8 + kMaxWords> body;
  Writer w(body);
  w.put<uint32_t>(request);
  w.put<uint8_t>(static_cast<uint8_t>(code));
  w.put<uint8_t>(0);
  w.put<uint16_t>(static_cast<uint16_t>(words.size()));
  w.put_bytes(bytes_of(words));
  append_frame(out, FrameType::kRefused, std::span(body).first(w.size()));
}

void append_open(std::vector<std::byte>* out, const Open& open) {
  std::array<std::byte, 20> body;
  Writer w(body);
  w.put<uint32_t>(open.request);
  w.put_bytes(open.cookie);
  append_frame(out, FrameType::kOpen, body);
}

void append_opened(std::vector<std::byte>* out, const Opened& opened) {
  std::array<std::byte, 8> body;
  Writer w(body);
  w.put<uint32_t>(opened.request);
  w.put<uint32_t>(opened.flow);
  append_frame(out, FrameType::kOpened, body);
}

void append_last_word(std::vector<std::byte>* out, std::span<const std::byte> statements) {
  append_frame(out, FrameType::kLastWord, statements);
}

void append_goodbye(std::vector<std::byte>* out) { append_frame(out, FrameType::kGoodbye, {}); }

void append_resume(std::vector<std::byte>* out, const Address& receiver) {
  std::array<std::byte, 16> body;
  Writer w(body);
  w.put<uint32_t>(receiver.connection);
  w.put<uint32_t>(0);
  w.put<uint64_t>(receiver.token);
  append_frame(out, FrameType::kResume, body);
}

void append_resumed(std::vector<std::byte>* out) { append_frame(out, FrameType::kResumed, {}); }

bool decode_hello_cookie(std::span<const std::byte> body, Cookie* out) {
  Reader r(body);
  get_cookie(r, out);
  return !r.failed();
}

bool decode_hello(std::span<const std::byte> body, Hello* out) {
  Reader r(body);
  get_cookie(r, &out->cookie);
  out->to_incarnation = r.get<uint64_t>();
  out->to_context = r.get<uint64_t>();
  out->to_device = r.get<uint32_t>();
  r.skip(4);
  return get_introduction(r, &out->self);
}

bool decode_welcome(std::span<const std::byte> body, Introduction* out) {
  Reader r(body);
  return get_introduction(r, out);
}

bool decode_refused(std::span<const std::byte> body, Refused* out) {
  Reader r(body);
  out->request = r.get<uint32_t>();
  const auto code = r.get<uint8_t>();
  r.skip(1);
  const auto length = r.get<uint16_t>();
  if (r.failed() || length > kMaxWords) return false;
  const bool known = code >= static_cast<uint8_t>(Refusal::kSpeech) &&
                     code <= static_cast<uint8_t>(Refusal::kFailed);
  out->code = known ? static_cast<Refusal>(code) : Refusal::kFailed;
  out->words = clean_text(r.get_bytes(length));
  return !r.failed();
}

bool decode_open(std::span<const std::byte> body, Open* out) {
  Reader r(body);
  out->request = r.get<uint32_t>();
  get_cookie(r, &out->cookie);
  return !r.failed() && out->request != kTheHello;
}

bool decode_opened(std::span<const std::byte> body, Opened* out) {
  Reader r(body);
  out->request = r.get<uint32_t>();
  out->flow = r.get<uint32_t>();
  return !r.failed();
}

bool decode_resume(std::span<const std::byte> body, Address* out) {
  Reader r(body);
  out->connection = r.get<uint32_t>();
  r.skip(4);
  out->token = r.get<uint64_t>();
  return !r.failed();
}

}  // namespace weft::wire
