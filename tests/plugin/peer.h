// SPDX-License-Identifier: Apache-2.0
//
// Tests of several processes: the program runs itself again as the peer, with a socket between the
// two for handles and words.
//
//   test_plugin_process --peer ROLE       (the socket is descriptor kPeerFd)
//
// Each program names its roles; main() is here, and sets a peer time-out of a second, for both.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

#include "tests/plugin/net.h"

namespace weft::plugin_test {

inline constexpr int kPeerFd = 100;  // far from what is open here
inline constexpr int kPeerTimeoutMs = 1000;

using Role = std::function<void(int fd)>;
// The program's.
extern const std::map<std::string, Role> kRoles;

bool write_all(int fd, const void* data, size_t bytes);
bool read_all(int fd, void* data, size_t bytes);
// A word of one byte.
inline bool say(int fd, char word) { return write_all(fd, &word, 1); }
char hear(int fd);  // 0 when there is nobody any more

// A connection each way to whoever is at the other end of `fd`.
struct Link {
  Link(Context& context, int fd);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  bool up() const { return send != nullptr && receive != nullptr; }

  void* send = nullptr;
  void* receive = nullptr;
};

class Peer {
 public:
  explicit Peer(const char* role);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }
  void kill();
  int wait_for_end();  // its status
  // Its role is over, and it found nothing wrong.
  void expect_good_end();

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

// One message there and back over a link whose other end plays `echo`, verified.
inline constexpr size_t kPingBytes = 200'000;
void ping(Link& link, uint64_t seed);
// The role: sends back what comes until the other end leaves.
void echo(int fd);

}  // namespace weft::plugin_test
