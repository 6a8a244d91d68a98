// SPDX-License-Identifier: Apache-2.0
// Posting to the sockets of the endpoint and polling them, a batch at a time.
#include "transport/udp/udp_fabric.h"

#include <algorithm>

#include "transport/udp/udp_address.h"

namespace weft::udp {

UdpFabric::UdpFabric(const UdpConfig& config, SocketSet sockets, Memory& memory)
    : address_(config.address),
      segment_bytes_(config.segment_bytes_override),
      speed_mbps_(config.speed_mbps),
      memory_(memory),
      sockets_(std::move(sockets)),
      wait_{sockets_.epoll()},
      send_batch_(sockets_.sends_trains()),
      receive_batch_(std::min(config.mtu - udp_overhead(address_.ipv6), kMaxUdpPayload),
                     sockets_.receives_trains()) {}

// Links.

UdpFabric::Link* UdpFabric::find(LinkId id) const {
  Link* link = links_.find(id % kMaxLinks, id / kMaxLinks);
  return link && link->in_use ? link : nullptr;
}

Result<LinkId> UdpFabric::create_link(LinkAddress* address) {
  Link* link = links_.take();
  if (!link) {
    return Status(Code::kNoResource, "the UDP fabric on " + address_.text() + " has all its " +
                                         std::to_string(kMaxLinks) + " links in use");
  }
  link->in_use = true;
  link->paths = 0;
  link->remotes.clear();
  UdpAddress ours{address_, {sockets_.ports().begin(), sockets_.ports().end()}};
  *address = encode_address(ours);
  return id_of(*link);
}

// Whether an address can be reached from ours at all.
Status UdpFabric::reachable(const IpAddress& peer) const {
  const auto refuse = [&](const char* why) {
    return Status(Code::kRemote, "this side has the address " + address_.text() + ", the peer " +
                                     peer.text() + ": " + why);
  };
  if (peer.ipv6 != address_.ipv6) {
    return refuse("IPv4 and IPv6 do not reach each other; choose one on both (WEFT_FAMILY)");
  }
  if (peer.loopback() != address_.loopback()) {
    return refuse(
        "a loopback address reaches no other host; choose the interface on both (WEFT_IFNAME)");
  }
  if (peer.ipv6 && peer.link_local() != address_.link_local()) {
    return refuse(
        "a link-local address reaches only neighbours by theirs; give both an address of the "
        "network, or choose the interface on both (WEFT_IFNAME)");
  }
  return Status();
}

Status UdpFabric::connect_link(LinkId id, std::span<const std::byte> peer_address) {
  Link* link = find(id);
  if (!link) return Status(Code::kInvalidArgument, "connecting a UDP link that is not open");
  if (!link->remotes.empty())
    return Status(Code::kInvalidArgument, "a UDP link was connected twice");
  Result<UdpAddress> peer = decode_address(peer_address);
  if (!peer) return peer.status();
  if (Status bad = reachable(peer->address); !bad) return bad;
  // A neighbour is where we are: on the link of our own address.
  if (peer->address.link_local()) peer->address.scope = address_.scope;
  link->remotes.reserve(peer->ports.size());
  for (uint16_t port : peer->ports) link->remotes.emplace_back(peer->address, port);
  link->paths = std::max(sockets_.size(), link->remotes.size());
  return Status();
}

int UdpFabric::paths(LinkId id) const {
  const Link* link = find(id);
  return link ? static_cast<int>(link->paths) : 0;
}

void UdpFabric::close_link(LinkId id) {
  Link* link = find(id);
  if (!link) return;
  link->in_use = false;
  links_.release(*link);
  if (link->pool_generation >= kGenerations) link->pool_generation = 1;
}

Result<MemoryKeys> UdpFabric::register_memory(const MemoryRange& range) {
  if (range.kind != MemoryKind::kHost) {
    return Status(Code::kUnavailable,
                  "the UDP fabric reads what it sends with the CPU: host memory only");
  }
  return MemoryKeys{};
}

// Sending.

UdpFabric::Route UdpFabric::route(LinkId id, PathIndex path) const {
  const Link* link = find(id);
  if (!link || path >= link->paths) return {};
  return {path % sockets_.size(), &link->remotes[path % link->remotes.size()]};
}

bool UdpFabric::outgoing(const SegmentPost& post, Outgoing* out) const {
  *out = {post.header.data(), post.header_bytes, post.source, post.bytes};
  return post.header_bytes <= kMaxSegmentHeader && post.bytes <= segment_bytes_ &&
         (post.source || post.bytes == 0);
}

bool UdpFabric::outgoing(const ControlPost& post, Outgoing* out) const {
  *out = {post.data.data(), post.bytes, nullptr, 0};
  return post.bytes <= kMaxControlBytes;
}

// Adds to the send batch what leaves by one socket, and says by which. Stops before a post that
// cannot be sent; 0 when that is the first.
template <class Post>
size_t UdpFabric::gather_run(std::span<const Post> posts, Route* by) {
  *by = route(posts[0].link, posts[0].path);
  Route current = *by;
  size_t count = 0;
  for (; count < posts.size(); ++count) {
    const Post& post = posts[count];
    if (count != 0 && (post.link != posts[count - 1].link || post.path != posts[count - 1].path)) {
      current = route(post.link, post.path);
    }
    Outgoing datagram;
    if (!current.to || current.socket != by->socket || !outgoing(post, &datagram)) break;
    if (!send_batch_.add(datagram, current.to)) break;
  }
  return count;
}

template <class Post>
size_t UdpFabric::send(std::span<const Post> batch) {
  size_t done = 0;
  while (done < batch.size()) {
    Route by;
    if (gather_run(batch.subspan(done), &by) == 0) {
      ++counters_.misposted;
      ++done;
      continue;
    }
    const SendBatch::Outcome outcome = send_batch_.flush(sockets_.descriptor(by.socket), counters_);
    done += outcome.datagrams;
    if (outcome.no_room) break;
  }
  return done;
}

size_t UdpFabric::post(Time, std::span<const SegmentPost> batch) { return send(batch); }

size_t UdpFabric::post_control(Time, std::span<const ControlPost> batch) { return send(batch); }

// Receiving.

size_t UdpFabric::poll(Time, size_t budget, FabricSink& sink) {
  ReceiveBatch& batch = receive_batch_;
  size_t delivered = batch.deliver(sink, memory_, budget);  // what the last poll had no budget for
  if (delivered < budget) sockets_.find_readable();
  while (delivered + batch.waiting() < budget) {
    const size_t wanted = budget - delivered - batch.waiting();
    // Half a train would have to be kept for later, which costs more than to stop here.
    if (wanted < batch.usual_train() && wanted < budget) break;
    const int socket = sockets_.next();
    if (socket < 0) break;
    const ReceiveBatch::Read read =
        batch.read(sockets_.descriptor(static_cast<size_t>(socket)), wanted, kTurn, counters_);
    if (!read.drained) sockets_.again(socket);
    if (batch.full()) delivered += batch.deliver(sink, memory_, budget - delivered);
  }
  delivered += batch.deliver(sink, memory_, budget - delivered);
  sockets_.keep_awake(batch.waiting() != 0);
  return delivered;
}

UdpCounters UdpFabric::counters() const {
  UdpCounters out = counters_;
  out.kernel_drops = sockets_.kernel_drops();
  out.receive_buffer_bytes = sockets_.receive_buffer_bytes();
  return out;
}

}  // namespace weft::udp
