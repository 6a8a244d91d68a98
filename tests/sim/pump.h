// SPDX-License-Identifier: Apache-2.0
// One simulated host: a Connection driven over a SimFabric, in the order that connection.h asks
// for.
//
// It does what the engine does and nothing else (no threads, no demultiplexing), so that a fault
// seen here is the connection's. `on_event` hears every event.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "multipath/connection/connection.h"
#include "transport/fabric.h"

namespace weft::test {

class Pump final : public FabricSink {
 public:
  Pump(Fabric& fabric, LinkId link, const ConnectionConfig& config)
      : connection(config), fabric_(fabric), link_(link), outbox_(std::make_unique<Outbox>()) {}

  std::function<void(const Event&)> on_event;
  Connection connection;

  void drive(Time now);
  Time deadline() const { return connection.poll_timeout(); }
  uint64_t strangers() const { return strangers_; }

  void receive(std::span<Datagram> batch) override;
  void arrived(std::span<const Datagram> batch) override;
  void landed(std::span<const Landing> batch) override;
  void completed(std::span<const Completion> batch) override;
  void path_changed(std::span<const PathChange> batch) override;

 private:
  void transmit();

  Fabric& fabric_;
  LinkId link_;
  std::unique_ptr<Outbox> outbox_;
  std::vector<wire::DataHeader> headers_;
  Time now_;
  uint64_t strangers_ = 0;
};

}  // namespace weft::test
