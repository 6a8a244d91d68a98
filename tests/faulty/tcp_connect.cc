// SPDX-License-Identifier: Apache-2.0
//
// Connections of the TCP plugin. Listening binds to the address of WEFT_IFNAME, or to loopback.
// The connector sends the listener's cookie; the acceptor answers with a byte, and only then does
// connect give a comm (as an RDMA plugin does). Nothing blocks; what was begun and never finished
// is freed with its context.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "tests/faulty/fault.h"
#include "tests/faulty/tcp_net.h"

namespace weft::faulty {
namespace {

struct Connecting {
  int fd = -1;
  bool said_hello = false;
  ~Connecting() {
    if (fd >= 0) ::close(fd);
  }
};

struct Context {
  std::mutex mutex;
  std::vector<std::unique_ptr<Connecting>> connecting;
};

struct Handle {
  sockaddr_in address;
  uint64_t cookie;
  Connecting* attempt;  // ours, between calls of connect
};
static_assert(sizeof(Handle) <= nccl::kHandleBytes);

struct ListenComm {
  int fd = -1;
  uint64_t cookie = 0;
  int guest = -1;  // accepted, has not shown the cookie yet
};

constexpr char kWelcome = 'W';

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

in_addr own_address() {
  in_addr found{};
  found.s_addr = htonl(INADDR_LOOPBACK);
  const char* name = std::getenv("WEFT_IFNAME");
  ifaddrs* list = nullptr;
  if (name == nullptr || ::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    if (std::strcmp(i->ifa_name, name) != 0) continue;
    found = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
    break;
  }
  ::freeifaddrs(list);
  return found;
}

void no_delay(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

Comm* new_comm(Comm::Kind kind, int fd) {
  auto comm = std::make_unique<Comm>();
  comm->kind = kind;
  comm->fd = fd;
  for (Request& request : comm->requests) request.comm = comm.get();
  no_delay(fd);
  return comm.release();
}

Result fail(const char* what) {
  warn("%s: %s", what, std::strerror(errno));
  return nccl::kSystemError;
}

}  // namespace

void* new_context() { return new Context; }

Result free_context(void* context) {
  delete static_cast<Context*>(context);
  return nccl::kSuccess;
}

Result listen(void*, int, void* handle, void** listen_comm) {
  auto comm = std::make_unique<ListenComm>();
  Handle mine{};
  mine.address.sin_family = AF_INET;
  mine.address.sin_addr = own_address();
  socklen_t size = sizeof mine.address;
  auto* address = reinterpret_cast<sockaddr*>(&mine.address);
  comm->fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (comm->fd < 0) return fail("socket");
  if (::bind(comm->fd, address, size) != 0 || ::listen(comm->fd, 16) != 0 ||
      ::getsockname(comm->fd, address, &size) != 0 ||
      ::getrandom(&comm->cookie, sizeof comm->cookie, 0) != sizeof comm->cookie) {
    const Result result = fail("listen");
    ::close(comm->fd);
    return result;
  }
  mine.cookie = comm->cookie;
  std::memcpy(handle, &mine, sizeof mine);
  *listen_comm = comm.release();
  return nccl::kSuccess;
}

Result connect(void* context, int, void* handle, void** send_comm, nccl::DeviceHandle**) {
  *send_comm = nullptr;
  if (has(Fault::kNoConnect)) return nccl::kSuccess;
  auto& owner = *static_cast<Context*>(context);
  Handle theirs;
  std::memcpy(&theirs, handle, sizeof theirs);
  if (theirs.attempt == nullptr) {
    auto attempt = std::make_unique<Connecting>();
    attempt->fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (attempt->fd < 0) return fail("socket");
    if (::connect(attempt->fd, reinterpret_cast<sockaddr*>(&theirs.address),
                  sizeof theirs.address) != 0 &&
        errno != EINPROGRESS) {
      return fail("connect");
    }
    theirs.attempt = attempt.get();
    std::memcpy(handle, &theirs, sizeof theirs);
    const std::lock_guard<std::mutex> lock(owner.mutex);
    owner.connecting.push_back(std::move(attempt));
  }
  Connecting& attempt = *theirs.attempt;
  if (!attempt.said_hello) {
    if (::send(attempt.fd, &theirs.cookie, sizeof theirs.cookie, MSG_NOSIGNAL) !=
        sizeof theirs.cookie) {
      return would_block() ? nccl::kSuccess : fail("connect");
    }
    attempt.said_hello = true;
  }
  char answer = 0;
  const ssize_t got = ::recv(attempt.fd, &answer, 1, 0);
  if (got < 0 && would_block()) return nccl::kSuccess;
  if (got != 1 || answer != kWelcome) {
    warn("connect: the listener went away");
    return nccl::kRemoteError;
  }
  *send_comm = new_comm(Comm::Kind::kSend, attempt.fd);
  attempt.fd = -1;
  theirs.attempt = nullptr;
  std::memcpy(handle, &theirs, sizeof theirs);
  const std::lock_guard<std::mutex> lock(owner.mutex);
  auto& list = owner.connecting;
  list.erase(std::find_if(list.begin(), list.end(), [&](auto& p) { return p.get() == &attempt; }));
  return nccl::kSuccess;
}

Result accept(void* listen_comm, void** recv_comm, nccl::DeviceHandle**) {
  auto& comm = *static_cast<ListenComm*>(listen_comm);
  *recv_comm = nullptr;
  if (comm.guest < 0) {
    comm.guest = ::accept4(comm.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (comm.guest < 0) return would_block() ? nccl::kSuccess : fail("accept");
  }
  uint64_t cookie = 0;
  const ssize_t got = ::recv(comm.guest, &cookie, sizeof cookie, 0);
  if (got < 0 && would_block()) return nccl::kSuccess;
  if (got != sizeof cookie || cookie != comm.cookie ||
      ::send(comm.guest, &kWelcome, 1, MSG_NOSIGNAL) != 1) {
    ::close(comm.guest);  // a stranger
    comm.guest = -1;
    return nccl::kSuccess;
  }
  *recv_comm = new_comm(Comm::Kind::kRecv, comm.guest);
  comm.guest = -1;
  return nccl::kSuccess;
}

Result close_listen(void* listen_comm) {
  auto* comm = static_cast<ListenComm*>(listen_comm);
  if (comm == nullptr) return nccl::kSuccess;
  if (comm->guest >= 0) ::close(comm->guest);
  ::close(comm->fd);
  delete comm;
  return nccl::kSuccess;
}

Result close_comm(void* comm) {
  auto* mine = static_cast<Comm*>(comm);
  if (mine == nullptr) return nccl::kSuccess;
  for (Request& request : mine->requests) {
    const bool abandoned = request.open && mine->kind == Comm::Kind::kRecv;
    if (has(Fault::kLateWrite) && abandoned) request.data[0][0] ^= 0xff;
  }
  ::close(mine->fd);
  delete mine;
  return nccl::kSuccess;
}

}  // namespace weft::faulty
