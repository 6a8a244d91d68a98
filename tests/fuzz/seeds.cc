// SPDX-License-Identifier: Apache-2.0
//
// Writes first inputs for the targets, with the encoders that ship: run by hand after a layout has
// changed, and committed. What the fuzzer adds of its own is merged by hand too (CONTRIBUTING.md).
//
//   fuzz_seeds tests/fuzz/corpus
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "tests/unit/wire/statements.h"
#include "transport/sim/network.h"
#include "transport/udp/udp_address.h"
#include "transport/wire/handshake.h"
#include "transport/wire/immediate.h"

namespace weft::fuzz {
namespace {

using namespace wire;
using Bytes = std::vector<std::byte>;

std::filesystem::path top;

void write(const char* target, const char* name, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(top / target);
  std::ofstream out(top / target / name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}
void write(const char* target, const char* name, std::string_view text) {
  write(target, name, std::as_bytes(std::span(text)));
}

template <class T>
void put(Bytes* out, std::type_identity_t<T> value) {
  const auto at = out->size();
  out->resize(at + sizeof(T));
  std::memcpy(out->data() + at, &value, sizeof(T));
}

void packets() {
  Bytes data(kDataHeaderBytes + 200);
  DataHeader h;
  h.packet = kFirstPacket, h.segment = 1, h.message_bytes = 456, h.segment_bytes = 256;
  h.payload_bytes = 200;
  encode_data(data, {1, 2}, h);
  write("packet", "data", data);
  Bytes probe(kProbeBytes), control(kControlHeaderBytes + 8);
  encode_probe(probe, {1, 2}, {kFirstPacket, 3, 0});
  write("packet", "probe", probe);
  encode_control(control, {1, 2}, {9, 10, 0, 8});
  write("packet", "control", control);
  Bytes immediate;
  put<uint32_t>(&immediate, immediate_short(5, 1, 300));
  put<uint64_t>(&immediate, 800);
  write("immediate", "short", immediate);
}

void statements() {
  Random random(1);
  for (const char* name : {"all", "all_again", "most"}) {
    Bytes packet(kMaxControlBytes);
    ControlWriter w(packet);
    for_each_statement([&]<class S>(S s) {
      randomize(random, &s);
      (void)w.add(s);
    });
    write("control", name, w.statements());
  }
}

void handles() {
  Bytes bytes(kHandleBytes);
  ListenHandle handle{.address = IpAddress::v4(10, 0, 0, 1), .port = 4000, .cookie = {}};
  handle.incarnation = 1, handle.context = 2, handle.device = 3, handle.probe_port = 4001;
  encode_handle(std::span<std::byte, kHandleBytes>(bytes), handle);
  write("handle", "ipv4", bytes);
  handle.address = IpAddress::v6_loopback();
  encode_handle(std::span<std::byte, kHandleBytes>(bytes), handle);
  write("handle", "ipv6", bytes);
  Bytes probe(kSizeProbeBytes + 20);
  encode_size_probe(probe, {true, {}, 7, static_cast<uint32_t>(probe.size())});
  write("handle", "size_probe", probe);
}

void frames() {
  Hello hello;
  hello.to_incarnation = 1, hello.to_context = 2;
  hello.self = {3, 4, 0, -1, {5, 6}, 1408, 32, {}, "udp", {}};
  hello.self.link_address = udp::encode_address({IpAddress::v4(10, 0, 0, 1), {4000, 4001}});
  Bytes stream = {std::byte{3}};  // pieces of 49 bytes
  const auto add = [&](const char* name, auto append) {
    Bytes frame;
    append(&frame);
    write("frame", name, frame);
    stream.insert(stream.end(), frame.begin(), frame.end());
  };
  add("hello", [&](Bytes* out) { append_hello(out, hello); });
  add("welcome", [&](Bytes* out) { append_welcome(out, hello.self); });
  add("refused", [](Bytes* out) { append_refused(out, 1, Refusal::kNoListener, "nobody"); });
  add("open", [](Bytes* out) { append_open(out, {7, {}}); });
  add("opened", [](Bytes* out) { append_opened(out, {7, 8}); });
  add("resume", [](Bytes* out) { append_resume(out, {9, 10}); });
  append_goodbye(&stream);
  append_resumed(&stream);
  write("stream", "all", stream);
  stream[0] = std::byte{0};  // pieces of one byte
  put<uint64_t>(&stream, 0), put<uint64_t>(&stream, 0);
  write("stream", "broken", stream);
}

void addresses() {
  write("udp_address", "ipv4",
        udp::encode_address({IpAddress::v4(10, 0, 0, 1), {4000, 4001, 4002}}));
  write("udp_address", "ipv6", udp::encode_address({IpAddress::v6_loopback(), {65535}}));
  sim::SimNetwork network(sim::SimConfig{}, 1);
  LinkAddress address;
  if (network.host(1).create_link(&address).ok()) write("sim_address", "link", address);
}

// --- Steps of the target `connection`: see there.

void say(Bytes* out, uint16_t stamp, auto... statement) {
  Bytes packet(kMaxControlBytes);
  ControlWriter w(packet);
  (void)(w.add(statement) && ...);
  const auto said = w.statements();
  put<uint8_t>(out, 0), put<uint16_t>(out, stamp);
  put<uint16_t>(out, static_cast<uint16_t>(said.size()));
  out->insert(out->end(), said.begin(), said.end());
}
void wait(Bytes* out, uint16_t microseconds) {
  put<uint8_t>(out, 4), put<uint16_t>(out, microseconds);
}

// The peer grants a buffer, we send into it, and it says that all has come.
Bytes sending(uint8_t kind) {
  Bytes out = {std::byte{kind}};
  Grant grant;
  grant.flow = 5, grant.parts = 1;
  grant.part[0] = {.region = 0, .epoch = 1, .offset = 0, .size = 2000, .tag = 3};
  say(&out, 1, Region{.id = 0, .epoch = 1, .base = 4096, .length = 8192, .rails = 1, .keys = {9}},
      grant);
  put<uint8_t>(&out, 6), put<uint8_t>(&out, 3), put<uint16_t>(&out, 1000);
  wait(&out, 50);
  PathAck path;
  path.words = 1, path.largest = kFirstPacket + 3, path.bits[0] = ~uint64_t{0};
  MessageAck message;
  message.flow = 5, message.base = 4, message.latest = 3, message.sized = true;
  for (uint16_t i = 0; i < 4; ++i) {
    path.path = i;
    say(&out, static_cast<uint16_t>(2 + i), path, message, FlowAck{5, 1}, Pong{i});
    wait(&out, 1000);
  }
  return out;
}

// We post a buffer, and the peer fills it.
Bytes receiving() {
  Bytes out = {std::byte{0}};
  put<uint8_t>(&out, 5), put<uint8_t>(&out, 0), put<uint16_t>(&out, 0), put<uint16_t>(&out, 600);
  say(&out, 1, GrantsSeen{0, 1}, RegionSeen{0, 1}, Query{0, 0, 0}, Ping{1});
  for (uint8_t segment = 0; segment < 5; ++segment) {
    put<uint8_t>(&out, 2), put<uint16_t>(&out, segment), put<uint8_t>(&out, segment & 3);
    put<uint8_t>(&out, 0), put<uint8_t>(&out, 0), put<uint8_t>(&out, 0);
    put<uint8_t>(&out, segment), put<uint16_t>(&out, 520), put<uint8_t>(&out, 1);
  }
  wait(&out, 200);
  say(&out, 2, FlowState{0, FlowRole::kSender, FlowPhase::kFinished, 0, 1});
  return out;
}

// A write with a record, and a short one, land.
Bytes landing() {
  Bytes out = {std::byte{5}};  // places, ordered path
  for (int i = 0; i < 2; ++i) {
    put<uint8_t>(&out, 5), put<uint8_t>(&out, 0), put<uint16_t>(&out, 0), put<uint16_t>(&out, 600);
  }
  say(&out, 1, GrantsSeen{0, 2}, RegionSeen{0, 1}, Record{0, 0, 500, 256, 9, 1, 0});
  for (const uint32_t immediate :
       {immediate_long(9, 1, 0), immediate_long(9, 1, 1), immediate_short(0, 0, 1)}) {
    put<uint8_t>(&out, 2), put<uint8_t>(&out, 1), put<uint8_t>(&out, 0);
    put<uint32_t>(&out, immediate), put<uint16_t>(&out, 250);
  }
  wait(&out, 200);
  say(&out, 2, PathState{1, PathPhase::kKill, 0, 0});
  return out;
}

void texts() {
  write("settings", "both",
        "WEFT_PATHS=16\nWEFT_CC=nscc\nNCCL_SOCKET_FAMILY=AF_INET6\nHOME=/x\n\f"
        "# comment\nWEFT_LINK_GBPS = 2.5\nWEFT_SEGMENT=1280\r\nWEFT_IFNAME=^docker,lo\n");
  write("settings", "wrong", "WEFT_PATH=16\nWEFT_PATHS=0\n\fno line\nWEFT_LOG=loud\nOTHER=1\n");
  write("interfaces", "none",
        "\nul \x7f__\x01 lo\nur \x0a\x01\x01\x01 eth0\nur6 \xfe\x80__ eth0\n");
  write("interfaces", "exact", "=eth1,eth0\nur \x0a\x01\x01\x01 eth0\nu 1234 eth01\nur 1234 eth1");
  write("interfaces", "except", "^eth,=x\nul \x7f__\x01 lo\nur 1234 eth0\nur 1234 ib0\n");
  write("numbers", "size", "64KiB");
  write("numbers", "decimal", "-1.25e-1");
  write("numbers", "plain", "18446744073709551615");
  write("stats", "line",
        "{\"paths\":[{\"id\":0,\"bytes\":10,\"packets\":1,\"retransmitted\":0}],"
        "\"retransmitted\":1,\"lost\":2}\n");
  Bytes packet;
  for (const uint32_t word : {2u, 7u, 0u, 0u, 3u, 4u}) put<uint32_t>(&packet, word);
  for (const char c : std::string("keytext")) packet.push_back(static_cast<std::byte>(c));
  write("channel", "handle", packet);
  const Bytes planted = {std::byte{0x57}, std::byte{0x46}, std::byte{1}, std::byte{9}};
  write("planted", "good", planted);
}

void trace() {
  const std::string begin =
      "# nccl-net-trace v1 pid=1\n1 0 thread name=x tid=1\n2 0 init comm=1d tc=-1 prof=1 = 0 c0\n"
      "3 0 devices = 0 n=1\n4 0 getProperties dev=0 = 0\n";
  const std::string receiver =
      begin +
      "5 1 listen c0 dev=0 = 0 l0 h=7c4e1386\n6 1 accept l0 = 0 -\n7 1 accept l0 = 0 r0\n"
      "8 1 closeListen l0 = 0\n9 1 regMr r0 b0 size=524288 type=1 base=7f00 = 0 m0\n"
      "10 2 irecv r0 n=2 m0+0:4096:1 m0+4096:4096:2 = 0 q0\n11 2 irecv r0 n=1 m0+0:64:1 = 0 q1\n"
      "12 2 test q0 = 0 done 100 200\n13 2 test q1 = 0 done 64\n"
      "14 2 iflush r0 n=1 m0+0:64 = 0 -\n15 1 deregMr r0 m0 = 0\n16 1 closeRecv r0 = 0\n"
      "17 0 finalize c0 = 0\n";
  const std::string sender =
      begin +
      "5 1 setNetAttr c0 s=2,1,2,1 r=2,1,2,1 op=ff algo=ff proto=ff = 0\n"
      "6 1 connect c0 dev=0 h=7c4e1386 = 0 -\n7 1 connect c0 dev=0 h=7c4e1386 = 0 s0 null=1 w=9\n"
      "9 1 regMr s0 b0 size=65536 type=1 base=7f00 = 0 m0\n"
      "10 2 isend s0 m0+0 100 tag=1 = 0 q0\n11 2 isend s0 m0+100 200 tag=2 = 0 q1\n"
      "12 2 isend s0 m0+0 64 tag=1 = 0 q2\n13 2 test q0 = 0 done 100\n14 2 test q1 = 0 done 200\n"
      "15 2 test q2 = 0 done 64\n16 1 closeSend s0 = 0\n17 0 finalize c0 = 0\n";
  write("trace", "pair", receiver + "\f" + sender);
}

}  // namespace
}  // namespace weft::fuzz

int main(int argc, char** argv) {
  using namespace weft::fuzz;
  if (argc != 2) {
    std::cerr << "usage: fuzz_seeds FOLDER\n";
    return 2;
  }
  top = argv[1];
  packets();
  statements();
  handles();
  frames();
  addresses();
  write("connection", "sending", sending(0));
  write("connection", "sending_placing", sending(5));
  write("connection", "sending_reliable", sending(3));
  write("connection", "receiving", receiving());
  write("connection", "landing", landing());
  texts();
  trace();
  return 0;
}
