// SPDX-License-Identifier: Apache-2.0
// Tables of a simulated host. The address of a link is 16 bytes:
//   0 u32 magic, 4 u8 version, 5 u8 host, 6 u16 paths, 8 u32 link, 12 u8 mode, 13 reserved x 3
#include "transport/sim/host.h"

#include <algorithm>

#include "transport/wire/cursor.h"

namespace weft::sim {
namespace {

constexpr uint32_t kAddressMagic = 0x4d495357;  // "WSIM"
constexpr uint8_t kAddressVersion = 1;
constexpr size_t kAddressBytes = 16;

}  // namespace

Result<LinkId> Host::create_link() {
  if (links_.size() >= kMaxLinks) {
    return Status(Code::kNoResource, "sim: a host makes at most 65536 links in its life");
  }
  links_.emplace_back();
  links_.back().paths.resize(static_cast<size_t>(config_.paths));
  return static_cast<LinkId>(links_.size() - 1);
}

LinkEnd* Host::link(LinkId id) {
  return id < links_.size() && !links_[id].closed ? &links_[id] : nullptr;
}

PathEnd* Host::path(LinkId id, PathIndex index) {
  LinkEnd* l = link(id);
  return l && index < l->paths.size() ? &l->paths[index] : nullptr;
}

std::vector<std::byte> Host::address_of(LinkId id) const {
  std::vector<std::byte> out(kAddressBytes);
  wire::Writer w(out);
  w.put<uint32_t>(kAddressMagic);
  w.put<uint8_t>(kAddressVersion);
  w.put<uint8_t>(static_cast<uint8_t>(number_));
  w.put<uint16_t>(static_cast<uint16_t>(config_.paths));
  w.put<uint32_t>(id);
  w.put<uint8_t>(static_cast<uint8_t>(config_.mode));
  return out;
}

Result<LinkId> Host::read_address(std::span<const std::byte> address, Host& other) const {
  const auto wrong = [](const char* words) {
    return Status(Code::kRemote, std::string("sim: peer address ") + words);
  };
  wire::Reader r(address);
  const auto magic = r.get<uint32_t>();
  const auto version = r.get<uint8_t>();
  const auto host = r.get<uint8_t>();
  const auto paths = r.get<uint16_t>();
  const auto id = r.get<uint32_t>();
  const auto mode = r.get<uint8_t>();
  if (address.size() != kAddressBytes || r.failed()) return wrong("is not 16 bytes long");
  if (magic != kAddressMagic || version != kAddressVersion)
    return wrong("is of another fabric or version");
  if (host != other.number_) return wrong("does not name the other host");
  if (mode != static_cast<uint8_t>(config_.mode)) return wrong("is of the other mode");
  if (paths != config_.paths) return wrong("offers another number of paths");
  if (!other.link(id)) return wrong("names a link that does not exist there");
  return LinkId{id};
}

void Host::push_landing(const Landing& landing) {
  if (PathEnd* p = path(landing.link, landing.path)) ++p->landings_held;
  InboxItem& item = inbox_.emplace_back();
  item.kind = InboxItem::Kind::kLanding;
  item.landing = landing;
}

void Host::push_completion(LinkId link, uint64_t cookie) {
  InboxItem& item = inbox_.emplace_back();
  item.kind = InboxItem::Kind::kCompletion;
  item.completion = {link, cookie};
}

void Host::push_change(const PathChange& change) {
  InboxItem& item = inbox_.emplace_back();
  item.kind = InboxItem::Kind::kPathChange;
  item.change = change;
}

void Host::push_datagram(Packet& packet) {
  ++packet.holders;
  ++datagrams_held_;
  InboxItem& item = inbox_.emplace_back();
  item.kind = InboxItem::Kind::kDatagram;
  item.packet = &packet;
}

InboxItem Host::pop() {
  const InboxItem item = inbox_.front();
  inbox_.pop_front();
  if (item.kind == InboxItem::Kind::kDatagram) --datagrams_held_;
  if (item.kind == InboxItem::Kind::kLanding) {
    PathEnd* p = path(item.landing.link, item.landing.path);
    if (p && p->landings_held != 0) --p->landings_held;
  }
  return item;
}

void Host::forget_link(LinkId id) {
  const auto about = [id](const InboxItem& i) {
    switch (i.kind) {
      case InboxItem::Kind::kLanding: return i.landing.link == id;
      case InboxItem::Kind::kCompletion: return i.completion.link == id;
      case InboxItem::Kind::kPathChange: return i.change.link == id;
      case InboxItem::Kind::kDatagram: break;  // names no link until its header is read
    }
    return false;
  };
  inbox_.erase(std::remove_if(inbox_.begin(), inbox_.end(), about), inbox_.end());
}

}  // namespace weft::sim
