// SPDX-License-Identifier: Apache-2.0
// The endpoint's UDP sockets, and which of them have something to read.
//
// With 32 sockets and more, asking each would cost a syscall a socket an empty poll. So all are
// members of one level-triggered epoll descriptor: find_readable() is one syscall, and the
// descriptor is what a sleeping engine waits on. Readable sockets queue up and take turns: next()
// takes the front one, and who did not read it dry puts it to the back with again(), so a flooded
// socket cannot starve the others. What was read and not yet taken is in no socket: then
// keep_awake() makes the descriptor readable all the same.
//
// Invariant: a socket is in the queue at most once. Ownership: all descriptors. What may fail:
// open(), in words; find_readable() never (an error reads as "nothing").
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/system/file_descriptor.h"
#include "transport/udp/udp.h"

namespace weft::udp {

class SocketSet {
 public:
  // config must have been checked (open_udp).
  static Result<SocketSet> open(const UdpConfig& config);

  size_t size() const { return sockets_.size(); }
  int descriptor(size_t socket) const { return sockets_[socket].get(); }
  int epoll() const { return epoll_.get(); }
  std::span<const uint16_t> ports() const { return ports_; }
  bool sends_trains() const { return sends_trains_; }        // UDP_SEGMENT
  bool receives_trains() const { return receives_trains_; }  // UDP_GRO
  // What leaves is ECN-capable, and what arrives says whether it was marked.
  bool sees_marks() const { return sees_marks_; }

  // Queues every socket that can be read now and is not queued.
  void find_readable();
  // The socket whose turn it is, taken from the queue; -1 when there is none.
  int next();
  void again(int socket);
  void keep_awake(bool awake);

  // Sum over the sockets of what the kernel dropped on arrival.
  uint64_t kernel_drops() const;
  uint32_t receive_buffer_bytes() const;

 private:
  Status add(const UdpConfig& config);
  Status set_options(int socket, const UdpConfig& config, const std::string& what);
  Status add_alarm();

  bool sends_trains_ = false;
  bool receives_trains_ = false;
  bool sees_marks_ = false;
  bool awake_ = false;
  FileDescriptor epoll_;
  FileDescriptor alarm_;  // always readable, watched while keep_awake(true)
  std::vector<FileDescriptor> sockets_;
  std::vector<uint16_t> ports_;
  std::vector<epoll_event> events_;
  std::vector<uint16_t> turns_;  // a ring of size() places
  std::vector<uint8_t> queued_;
  size_t first_ = 0;
  size_t waiting_ = 0;
};

}  // namespace weft::udp
