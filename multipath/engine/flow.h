// SPDX-License-Identifier: Apache-2.0
// What the application holds of a flow, and the lock-free road between the application's thread and
// the engine: requests, commands down, grants up.
//
// A SendFlow matches sends to grants on the application's own thread (Matcher) and pushes matched
// sends to the engine; a ReceiveFlow pushes receives. No call here takes a lock or makes a system
// call.
//
// Bounded by construction: a command holds a request until test() gives the request back, and each
// command ring is as large as its request pool, so it cannot overflow; a grant in the ring is of a
// receive that has not completed, of which an honest peer has kMaxReceives at most (a ring that is
// full after all is a peer that breaks the protocol, and fails the flow). What a flow needs for
// data it allocates with the first receive or the first grant: half of all flows never carry a
// byte.
//
// Threading: send(), receive() and Request::take() of one flow come from one thread at a time, the
// application's; members marked "engine's" are touched only under the engine's lock. Ownership: a
// flow owns its requests; they die with it. Failure: a failed flow completes all its requests as
// failed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "multipath/connection/matcher.h"
#include "multipath/connection/types.h"
#include "multipath/engine/dirty_stack.h"
#include "transport/base/intrusive_list.h"
#include "transport/base/pool.h"
#include "transport/base/spsc_ring.h"
#include "transport/fabric.h"

namespace weft {

class Engine;
struct Member;  // a connection as the engine knows it

inline constexpr size_t kMaxSendRequests = 256;
inline constexpr size_t kMaxReceiveRequests = kMaxReceives;

// Memory that sends and receives of one connection may name.
struct Registration {
  MemoryRange range;
  MemoryKeys keys;
  RegionId region = 0;
  Member* member = nullptr;

  bool covers(const std::byte* base, uint64_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(range.base);
    const auto at = reinterpret_cast<uintptr_t>(base);
    return at >= begin && at - begin <= range.bytes && bytes <= range.bytes - (at - begin);
  }
};

// A send or receive under way. The engine publishes `state` last (release), the application reads
// it first.
struct Request : Hook {
  enum class State : uint8_t { kPending, kDone, kFailed };

  std::atomic<State> state{State::kPending};
  uint8_t parts = 0;                              // of a receive; 1 for a send
  Failure failure = Failure::kNone;               // when kFailed
  std::array<uint64_t, wire::kMaxParts> sizes{};  // when kDone: bytes of each part
  class Flow* flow = nullptr;
  void* user = nullptr;  // the application's own, who alone looks at it
  uint32_t pool_index = 0;
  uint32_t pool_generation = 0;
};

enum class Answer : uint8_t {
  kPosted,  // *request is under way
  // not now: no grant for it yet, or all requests are out; the same call may succeed later
  kAgain,
  kFailed,  // the flow has failed: failure() says why
  // the call makes no sense (memory outside its registration, too many parts, a send larger than
  kInvalid,
  // its receive); nothing has happened
};

class Flow {
 public:
  Flow(Engine& engine, Member& member, FlowId id, wire::FlowRole role)
      : engine_(engine), member_(member), id_(id), role_(role) {}
  virtual ~Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  FlowId id() const { return id_; }
  wire::FlowRole role() const { return role_; }
  Member& member() const { return member_; }
  // kNone while the flow works.
  Failure failure() const { return failure_.load(std::memory_order_acquire); }

  // Gives a request that is not pending back to its flow. The application's thread.
  virtual void release(Request& request) = 0;

 protected:
  friend Engine;
  friend DirtyStack;
  // Engine's: carry out the commands that wait in the ring.
  virtual void drain(Engine& engine) = 0;

  void submit();  // tells the engine that commands wait

  Engine& engine_;
  Member& member_;
  const FlowId id_;
  const wire::FlowRole role_;
  std::atomic<Failure> failure_{Failure::kNone};

  // Engine's.
  IntrusiveList<Request> outstanding_;

  // DirtyStack's.
  std::atomic<bool> queued_{false};
  Flow* next_dirty_ = nullptr;
};

class SendFlow final : public Flow {
 public:
  SendFlow(Engine& engine, Member& member, FlowId id)
      : Flow(engine, member, id, wire::FlowRole::kSender) {}
  ~SendFlow() override { delete lane_.load(std::memory_order_acquire); }

  // `registration` may be null when bytes == 0.
  Answer send(const std::byte* data, uint64_t bytes, int32_t tag, const Registration* registration,
              Request** request, const TrafficHints& hints = {});
  void release(Request& request) override { requests_.release(request); }

 private:
  friend Engine;
  struct Lane {
    SpscRing<wire::Grant, kMaxReceives> grants;        // engine -> application
    SpscRing<MatchedSend, kMaxSendRequests> commands;  // application -> engine
    Matcher matcher;                                   // the application's
  };
  void drain(Engine& engine) override;
  bool deliver_grant(const wire::Grant& grant);  // engine's

  std::atomic<Lane*> lane_{nullptr};  // made by the engine with the first grant
  Pool<Request, kMaxSendRequests> requests_;
  // A send found no grant since the engine cleared this (every kRefusalPeriod at most): the engine
  // then sees to it that the peer shows a sign of life.
  std::atomic<bool> refused_{false};
};

// One part of a receive. `registration` may be null when size == 0.
struct ReceiveBuffer {
  std::byte* base = nullptr;
  uint64_t size = 0;
  int32_t tag = 0;
  const Registration* registration = nullptr;
};

class ReceiveFlow final : public Flow {
 public:
  ReceiveFlow(Engine& engine, Member& member, FlowId id)
      : Flow(engine, member, id, wire::FlowRole::kReceiver) {}

  // 1 to wire::kMaxParts parts.
  Answer receive(std::span<const ReceiveBuffer> parts, Request** request);
  void release(Request& request) override {
    parts_out_ -= request.parts;
    requests_.release(request);
  }

 private:
  friend Engine;
  struct Command {
    Request* request = nullptr;
    std::array<ReceivePart, wire::kMaxParts> part{};
  };
  using Commands = SpscRing<Command, kMaxReceiveRequests>;
  void drain(Engine& engine) override;

  std::unique_ptr<Commands> commands_;  // made with the first receive, published by submit()
  Pool<Request, kMaxReceiveRequests> requests_;
  uint32_t parts_out_ = 0;
};

}  // namespace weft
