// SPDX-License-Identifier: Apache-2.0
// Datagrams gathered into sendmmsg calls, equal ones of a burst into GSO trains.
#include "transport/udp/send_batch.h"

#include <netinet/udp.h>

#include <cerrno>
#include <cstring>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace weft::udp {

SendBatch::SendBatch(bool trains) : trains_(trains), headers_{}, control_{} {}

bool SendBatch::joins(const Message& last, uint32_t bytes, const SocketAddress* to) const {
  return trains_ && last.to == to && !last.ended && bytes != 0 && bytes <= last.datagram_bytes &&
         last.datagrams < kTrain && last.bytes + bytes <= kMaxUdpPayload;
}

void SendBatch::begin_message(uint32_t bytes, const SocketAddress* to) {
  message_[messages_] = {to, 0, bytes, 0, false};
  msghdr& h = headers_[messages_].msg_hdr;
  h.msg_name = to ? const_cast<sockaddr*>(to->get()) : nullptr;
  h.msg_namelen = to ? to->size() : 0;
  h.msg_iov = &piece_[pieces_];
  h.msg_iovlen = 0;
  h.msg_control = nullptr;
  h.msg_controllen = 0;
  ++messages_;
}

bool SendBatch::add(const Outgoing& datagram, const SocketAddress* to) {
  if (pieces_ + 2 > kPieces) return false;
  const uint32_t bytes = datagram.header_bytes + datagram.payload_bytes;
  if (messages_ == 0 || !joins(message_[messages_ - 1], bytes, to)) {
    if (messages_ == kMessages) return false;
    begin_message(bytes, to);
  }
  Message& message = message_[messages_ - 1];
  msghdr& h = headers_[messages_ - 1].msg_hdr;
  const auto piece = [&](const std::byte* from, uint32_t length) {
    if (length == 0) return;
    piece_[pieces_++] = {const_cast<std::byte*>(from), length};
    ++h.msg_iovlen;
  };
  piece(datagram.header, datagram.header_bytes);
  piece(datagram.payload, datagram.payload_bytes);
  ++message.datagrams;
  message.bytes += bytes;
  message.ended = bytes < message.datagram_bytes;
  return true;
}

void SendBatch::set_train_size(size_t message) {
  msghdr& h = headers_[message].msg_hdr;
  Control& control = control_[message];
  h.msg_control = control.bytes;
  h.msg_controllen = sizeof control.bytes;
  cmsghdr* c = CMSG_FIRSTHDR(&h);
  c->cmsg_level = IPPROTO_UDP;
  c->cmsg_type = UDP_SEGMENT;
  c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
  const auto size = static_cast<uint16_t>(message_[message].datagram_bytes);
  std::memcpy(CMSG_DATA(c), &size, sizeof size);
}

SendBatch::Verdict SendBatch::judge(int error, bool retried, const Message& message,
                                    UdpCounters& counters) {
  switch (error) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case EINTR: ++counters.refused; return Verdict::kWait;
    case EMSGSIZE: counters.too_big += message.datagrams; return Verdict::kLost;
    case EINVAL:
    case EIO:
    case EOPNOTSUPP:
      // A device without checksum offload, or an older kernel: no trains on this host.
      if (message.datagrams > 1) return Verdict::kPartTrains;
      break;
    default: break;
  }
  // ICMP's news about an earlier datagram stand in for an answer about this one; reading them
  // cleared them, so the second try tells. Whatever comes then is about this datagram.
  if (!retried) return Verdict::kRetry;
  counters.send_errors += message.datagrams;
  return Verdict::kLost;
}

SendBatch::Outcome SendBatch::flush(int socket, UdpCounters& counters) {
  for (size_t i = 0; i < messages_; ++i) {
    if (message_[i].datagrams > 1) set_train_size(i);
  }
  Outcome out;
  bool retried = false;
  size_t i = 0;
  while (i < messages_) {
    const int sent =
        ::sendmmsg(socket, &headers_[i], static_cast<unsigned>(messages_ - i), MSG_NOSIGNAL);
    ++counters.send_calls;
    if (sent > 0) {
      for (const size_t end = i + static_cast<size_t>(sent); i < end; ++i) {
        out.datagrams += message_[i].datagrams;
        counters.sent += message_[i].datagrams;
        counters.sent_bytes += message_[i].bytes;
        counters.trains += message_[i].datagrams > 1;
      }
      retried = false;
      continue;
    }
    const Verdict verdict = judge(sent < 0 ? errno : EAGAIN, retried, message_[i], counters);
    if (verdict == Verdict::kLost) {
      out.datagrams += message_[i++].datagrams;
      retried = false;
    } else if (verdict == Verdict::kRetry) {
      retried = true;
    } else {
      out.no_room = verdict == Verdict::kWait;
      if (verdict == Verdict::kPartTrains) trains_ = false;
      break;
    }
  }
  messages_ = pieces_ = 0;
  return out;
}

}  // namespace weft::udp
