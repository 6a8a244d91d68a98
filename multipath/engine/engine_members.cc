// SPDX-License-Identifier: Apache-2.0
// Connections, flows and memory come and go. Called under the lock that also serialises progress().
#include "multipath/engine/engine.h"

namespace weft {

Member* Engine::reserve(uint64_t token) {
  if (free_members_.empty()) {
    if (members_.size() >= kMaxMembers) return nullptr;
    const auto index = static_cast<uint32_t>(members_.size());
    members_.push_back(std::make_unique<Member>());
    members_.back()->own.connection = index;
    deadlines_.push_back(Time::never());
    free_members_.push_back(index);
  }
  Member& member = *members_[free_members_.back()];
  free_members_.pop_back();
  member.own.token = token;
  return &member;
}

void Engine::attach(Member& member, LinkId link, const ConnectionConfig& config) {
  member.link = link;
  member.connection = std::make_unique<Connection>(config);
  links_[link] = &member;
  last_link_member_ = nullptr;
  activate(member);
}

void Engine::detach(Member& member) {
  member.unlink();
  if (member.connection) {
    links_.erase(member.link);
    last_link_member_ = nullptr;
    member.connection.reset();
  }
  member.send_flows.clear();
  member.receive_flows.clear();
  member.user = nullptr;
  const uint32_t index = member.own.connection & 0xffff;
  deadlines_[index] = Time::never();
  // The upper half counts reuses, so that what the network still holds for the old name finds
  // nothing.
  member.own = {index | ((member.own.connection + 0x10000) & 0xffff0000u), 0};
  free_members_.push_back(index);
}

void Engine::handle_peer_hint(Member& member, Time now) {
  if (!member.connection) return;
  now_ = std::max(now_, now);
  member.connection->handle_peer_hint(now_);
  activate(member);
}

void Engine::handle_peer_gone(Member& member, Time now) {
  if (!member.connection) return;
  now_ = std::max(now_, now);
  member.connection->handle_peer_gone(now_);
  activate(member);
}

void Engine::handle_statements(Member& member, Time now, std::span<const std::byte> statements) {
  if (!member.connection) return;
  now_ = std::max(now_, now);
  member.connection->handle_statements(now_, statements);
  activate(member);
}

std::vector<Flow*>& Engine::flows_of(Member& member, wire::FlowRole role) {
  return role == wire::FlowRole::kSender ? member.send_flows : member.receive_flows;
}

Flow* Engine::find_flow(Member& member, FlowId id, wire::FlowRole role) {
  const auto& flows = flows_of(member, role);
  const uint32_t index = flow_index(id);
  if (index >= flows.size()) return nullptr;
  Flow* flow = flows[index];
  return flow && flow->id() == id ? flow : nullptr;
}

std::unique_ptr<SendFlow> Engine::open_send_flow(Member& member, FlowId id) {
  auto& flows = member.send_flows;
  const uint32_t index = flow_index(id);
  if (index < flows.size() && flows[index]) return nullptr;
  if (!member.connection || !member.connection->open_send_flow(id)) return nullptr;
  if (index >= flows.size()) flows.resize(index + 1);
  auto flow = std::make_unique<SendFlow>(*this, member, id);
  flows[index] = flow.get();
  activate(member);
  return flow;
}

std::unique_ptr<ReceiveFlow> Engine::open_receive_flow(Member& member) {
  FlowId id = 0;
  if (!member.connection || !member.connection->open_receive_flow(&id)) return nullptr;
  auto& flows = member.receive_flows;
  const uint32_t index = flow_index(id);
  if (index >= flows.size()) flows.resize(index + 1);
  auto flow = std::make_unique<ReceiveFlow>(*this, member, id);
  flows[index] = flow.get();
  activate(member);
  return flow;
}

void Engine::close_flow(Flow& flow) {
  drain_commands();  // so that the flow is not on the dirty stack; its owner pushes no more
  Member& member = flow.member();
  auto& flows = flows_of(member, flow.role());
  const uint32_t index = flow_index(flow.id());
  if (index < flows.size() && flows[index] == &flow) flows[index] = nullptr;
  while (flow.outstanding_.pop_front()) {
  }
  if (flow.role() == wire::FlowRole::kSender) std::erase(refused_, static_cast<SendFlow*>(&flow));
  if (!member.connection) return;
  if (flow.role() == wire::FlowRole::kSender) {
    member.connection->close_send_flow(flow.id());
  } else {
    member.connection->close_receive_flow(flow.id());
  }
  activate(member);
}

Status Engine::register_memory(Member& member, const MemoryRange& range, Registration* out) {
  if (!member.connection)
    return {Code::kInternal, "memory registered on a connection that is gone"};
  if (!range.base || range.bytes == 0) {
    return {Code::kInvalidArgument, "a registration needs an address and a size that are not 0"};
  }
  Result<MemoryKeys> keys = fabric_.register_memory(range);
  if (!keys.ok()) return keys.status();
  RegionId region = 0;
  if (!member.connection->add_region(range.base, range.bytes, std::span(&keys->remote, 1),
                                     &region)) {
    fabric_.deregister_memory(*keys);
    return {Code::kNoResource, "a connection has no room for another registration (" +
                                   std::to_string(kMaxRegions) + " at most)"};
  }
  *out = {range, *keys, region, &member};
  activate(member);
  return {};
}

void Engine::deregister_memory(Registration& registration) {
  drain_commands();  // commands that name the region meet it alive, and fail with it in good order
  Member& member = *registration.member;
  if (member.connection) {
    member.connection->remove_region(registration.region);
    deliver_events(member);
    activate(member);
  }
  fabric_.deregister_memory(registration.keys);
}

}  // namespace weft
