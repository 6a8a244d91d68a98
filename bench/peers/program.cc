// SPDX-License-Identifier: Apache-2.0
// Arguments, roles and ends of the small programs; see program.h.
#include "bench/peers/program.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tools/common/numbers.h"

namespace weft::peers {
namespace {

bool parse_address(const std::string& text, sockaddr_in& at) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  const auto port = tools::parse_integer<uint16_t>(std::string_view(text).substr(colon + 1));
  at.sin_family = AF_INET;
  at.sin_port = htons(port.value_or(0));
  return at.sin_port != 0 && ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &at.sin_addr) == 1;
}

bool parse_seconds(const char* text, double& seconds) {
  const auto value = tools::parse_decimal(text, 0.001, kMaxSeconds);
  seconds = value.value_or(0);
  return value.has_value();
}

bool parse_bytes(const char* text, size_t least, size_t most, size_t& bytes) {
  const auto value = tools::parse_integer<size_t>(text);
  bytes = value.value_or(0);
  return value && *value >= least && *value <= most;
}

// What the argument `name` must be; empty when `value` is that.
const char* take(std::string_view name, const char* value, Arguments& a) {
  if (name == "--at")
    return parse_address(value, a.at) ? "" : "an IPv4 address and a port, IP:PORT";
  if (name == "--payload")
    return parse_bytes(value, 2, kMaxDatagram, a.payload) ? "" : "from 2 to 65507 bytes";
  if (name == "--bytes")
    return parse_bytes(value, 1, kMaxDatagram, a.bytes) ? "" : "from 1 to 65507 bytes";
  if (name == "--source")
    return parse_bytes(value, 1, kMaxSource, a.source) ? "" : "from 1 byte to 8 GB";
  double& seconds = name == "--seconds" ? a.seconds : a.timeout;
  return parse_seconds(value, seconds) ? "" : "from 0.001 to 86400 seconds";
}

// Empty when all is well.
std::string parse(int argc, char** argv, Arguments& a) {
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--tcp") {
      a.tcp = true;
      continue;
    }
    bool known = false;
    for (const char* one : {"--at", "--payload", "--bytes", "--source", "--seconds", "--timeout"}) {
      known = known || name == one;
    }
    if (!known) return name + " is not known";
    if (++i == argc) return name + " needs a value";
    const std::string_view wanted = take(name, argv[i], a);
    if (!wanted.empty()) return name + " " + argv[i] + ": it is " + std::string(wanted);
  }
  return a.at.sin_port != 0 ? "" : "--at IP:PORT is missing";
}

}  // namespace

int run_program(int argc, char** argv, std::initializer_list<Role> roles, const char* usage) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "-h" || what == "--help") {
    std::printf("usage: %s", usage);
    return tools::kGood;
  }
  std::string why = "the first word says which part to play";
  for (const Role& role : roles) {
    if (what != role.name) continue;
    Arguments arguments;
    why = parse(argc, argv, arguments);
    if (why.empty()) return role.play(arguments);
  }
  std::fprintf(stderr, "%s: %s\nusage: %s", program_invocation_short_name, why.c_str(), usage);
  return tools::kUsage;
}

void fail(const char* what) {
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, std::strerror(errno));
  std::exit(tools::kFailed);
}

void time_out() {
  std::fprintf(stderr, "%s: out of time\n", program_invocation_short_name);
  std::exit(tools::kTimedOut);
}

}  // namespace weft::peers
