// SPDX-License-Identifier: Apache-2.0
// The Endpoint itself: locks around the peer table, and the road from send, receive and test to the
// engine.
#include "multipath/endpoint/endpoint.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "multipath/congestion/law.h"
#include "multipath/endpoint/out_of_band.h"
#include "multipath/endpoint/peer_table.h"
#include "multipath/engine/engine.h"
#include "multipath/engine/progress_thread.h"
#include "multipath/path/selector.h"
#include "transport/system/clock.h"

namespace weft {
namespace {

constexpr Duration kStrangerPatience = seconds(5);

class EndpointImpl final : public Endpoint, private Chores {
 public:
  EndpointImpl(EndpointOptions options, std::unique_ptr<Fabric> fabric)
      : options_(std::move(options)),
        fabric_(std::move(fabric)),
        engine_(*fabric_, monotonic_now),
        progress_(engine_, fabric_->wait_descriptors()),
        peers_(options_, *fabric_, progress_, out_of_band_) {}

  ~EndpointImpl() override {
    {
      SetUp lock(*this);
      peers_.finish_all([&](Duration pause) { lock.rest(pause); });
    }
    progress_.stop();  // without the set-up mutex, which the thread may be waiting for
  }

  Status start();

  Result<Listener*> listen(uint64_t context, Handle* handle) override {
    SetUp lock(*this);
    return peers_.listen(context, handle);
  }
  Status accept(Listener* listener, ReceiveFlow** flow) override;
  void close_listener(Listener* listener) override {
    SetUp lock(*this);
    peers_.close_listener(listener);
  }
  Result<Connector*> start_connect(uint64_t context, int32_t traffic_class,
                                   const Handle& handle) override {
    SetUp lock(*this);
    return peers_.start_connect(context, traffic_class, handle);
  }
  Status connect(Connector* connector, SendFlow** flow) override;
  void close(SendFlow* flow) override { close_flow(flow); }
  void close(ReceiveFlow* flow) override { close_flow(flow); }
  void finish_context(uint64_t context) override {
    SetUp lock(*this);
    peers_.finish_context(context, [&](Duration pause) { lock.rest(pause); });
  }

  Result<Registration*> register_memory(Flow* flow, const MemoryRange& range) override {
    SetUp lock(*this);
    return peers_.register_memory(*flow, range);
  }
  void deregister(Registration* registration) override {
    SetUp lock(*this);
    peers_.deregister(registration);
  }

  Answer send(SendFlow* flow, const std::byte* data, uint64_t bytes, int32_t tag,
              const Registration* registration, Request** request,
              const TrafficHints& hints) override {
    const Answer answer = flow->send(data, bytes, tag, registration, request, hints);
    if (answer <= Answer::kAgain) progress_.notify();  // again: the engine is to watch the peer
    if (answer == Answer::kAgain) progress_.drive();   // perhaps the grant is here already
    return answer;
  }
  Answer receive(ReceiveFlow* flow, std::span<const ReceiveBuffer> parts,
                 Request** request) override {
    const Answer answer = flow->receive(parts, request);
    if (answer == Answer::kPosted) progress_.notify();
    return answer;
  }
  Status test(Request* request, bool* done, uint64_t* sizes, int* parts) override;

  Status failure_of(const Flow& flow) const override {
    const Failure failure = flow.failure();
    if (failure == Failure::kNone) return {};
    return words(flow, failure);
  }

  const Fabric& fabric() const override { return *fabric_; }
  EndpointStatistics statistics() override {
    SetUp lock(*this);
    EndpointStatistics out;
    peers_.add_statistics(&out);
    return out;
  }

 private:
  // The set-up mutex. On release the thread learns when set-up needs it next.
  class SetUp {
   public:
    explicit SetUp(EndpointImpl& endpoint) : endpoint_(endpoint), lock_(endpoint.set_up_) {}
    SetUp(EndpointImpl& endpoint, std::try_to_lock_t how)
        : endpoint_(endpoint), lock_(endpoint.set_up_, how) {}
    ~SetUp() {
      if (lock_.owns_lock()) endpoint_.publish_deadline();
    }
    bool owned() const { return lock_.owns_lock(); }
    // Others' turn.
    void rest(Duration pause) {
      lock_.unlock();
      std::this_thread::sleep_for(std::chrono::nanoseconds(pause.ns));
      lock_.lock();
    }

   private:
    EndpointImpl& endpoint_;
    std::unique_lock<std::mutex> lock_;
  };

  void publish_deadline() {
    const int64_t next = earlier(peers_.deadline(), out_of_band_.deadline()).ns;
    const int64_t before = deadline_ns_.exchange(next, std::memory_order_seq_cst);
    if (next < before) progress_.nudge();
  }
  void serve_locked(Time now) {
    out_of_band_.serve(now);
    peers_.tick(now);
  }
  void close_flow(Flow* flow) {
    SetUp lock(*this);
    peers_.close_flow(flow);
  }
  static Status words(const Flow& flow, Failure failure) {
    const bool ours = failure == Failure::kTooLarge || failure == Failure::kDeregistered ||
                      failure == Failure::kLocal;
    return {
        ours ? Code::kInvalidArgument : Code::kRemote,
        std::string(flow.role() == wire::FlowRole::kSender ? "sending to " : "receiving from ") +
            PeerTable::name_of(flow) + ": " + describe(failure)};
  }

  // Chores, for the engine's thread.
  int descriptor() const override { return out_of_band_.descriptor(); }
  Time deadline() const override { return Time{deadline_ns_.load(std::memory_order_seq_cst)}; }
  void serve(Time now) override {
    SetUp lock(*this);
    serve_locked(now);
  }

  const EndpointOptions options_;
  const std::unique_ptr<Fabric> fabric_;
  Engine engine_;
  Progress progress_;
  std::mutex set_up_;
  OutOfBand out_of_band_;
  PeerTable peers_;
  std::atomic<int64_t> deadline_ns_{INT64_MAX};
};

Status EndpointImpl::start() {
  Status status = peers_.open();
  if (status.ok()) {
    status = out_of_band_.open(options_.address, options_.peer_timeout,
                               std::min(options_.peer_timeout, kStrangerPatience), &peers_);
  }
  if (status.ok()) peers_.open_probe();
  if (status.ok()) status = progress_.start(options_.progress, this);
  if (status.ok()) return {};
  return {status.code(), options_.device_name + ": " + status.words()};
}

Status EndpointImpl::accept(Listener* listener, ReceiveFlow** flow) {
  *flow = nullptr;
  SetUp lock(*this, std::try_to_lock);
  if (!lock.owned()) return {};
  serve_locked(monotonic_now());
  *flow = peers_.accept(*listener);
  return {};
}

Status EndpointImpl::connect(Connector* connector, SendFlow** flow) {
  *flow = nullptr;
  SetUp lock(*this, std::try_to_lock);
  if (!lock.owned()) return {};
  serve_locked(monotonic_now());
  return peers_.poll(connector, flow);
}

Status EndpointImpl::test(Request* request, bool* done, uint64_t* sizes, int* parts) {
  auto state = request->state.load(std::memory_order_acquire);
  if (state == Request::State::kPending) {
    progress_.drive();
    state = request->state.load(std::memory_order_acquire);
  }
  *done = state != Request::State::kPending;
  if (!*done) return {};
  Status status;
  if (state == Request::State::kDone) {
    if (sizes) std::copy_n(request->sizes.begin(), request->parts, sizes);
    if (parts) *parts = request->parts;
  } else {
    status = words(*request->flow, request->failure);
  }
  request->flow->release(*request);
  return status;
}

Status check(const EndpointOptions& options, const Fabric& fabric) {
  if (!make_selector(options.selector, {})) {
    return {Code::kInvalidArgument, "no path selector is called \"" + options.selector + "\""};
  }
  if (!make_law(options.law, {}, Pipe({}))) {
    return {Code::kInvalidArgument, "no congestion control is called \"" + options.law + "\""};
  }
  if (options.peer_timeout <= Duration{0} || options.timer_floor <= Duration{0} ||
      options.window_bytes == 0 || options.burst_bytes == 0) {
    return {Code::kInvalidArgument, "time-outs, window and burst of an endpoint must be positive"};
  }
  const uint32_t segment = fabric.max_segment_bytes();
  if (segment == 0 || segment % kLineBytes != 0) {
    return {Code::kInternal, std::string("fabric ") + fabric.name() + " has a segment size of " +
                                 std::to_string(segment) + ", no multiple of 128"};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(EndpointOptions options,
                                                 std::unique_ptr<Fabric> fabric) {
  if (const Status good = check(options, *fabric); !good.ok()) return good;
  auto endpoint = std::make_unique<EndpointImpl>(std::move(options), std::move(fabric));
  const Status started = endpoint->start();
  if (!started.ok()) return started;
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace weft
