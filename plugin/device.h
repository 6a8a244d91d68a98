// SPDX-License-Identifier: Apache-2.0
// A device is a network interface; it gets an endpoint when the first communicator needs one.
//
// The endpoint is shared by all communicators and counted by them: the last one to let go ends it,
// threads and sockets included, since NCCL unloads the plugin next. Each endpoint's counters go to
// WEFT_STATS as one line of JSON at its end.
//
// Threading: under the process's mutex, but for properties(), which do not change while anybody has
// a context. Ownership: owns its endpoint. What may fail: opening, in words that name the
// interface.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "multipath/endpoint/endpoint.h"
#include "plugin/net.h"
#include "transport/base/result.h"
#include "transport/memory.h"
#include "transport/system/config.h"
#include "transport/system/interfaces.h"

namespace weft::plugin {

class Device {
 public:
  // Precondition: no endpoint is open. Text of an earlier life stays at its address.
  void become(const Interface& interface, const Config& config);

  const Properties& properties() const { return properties_; }
  const Interface& interface() const { return interface_; }
  uint32_t segment_bytes(const Config& config) const;

  // One more user. Opens the endpoint if there is none.
  Result<Endpoint*> acquire(int index, const Config& config);
  // One user less. The last one's leaving writes the counters and ends the endpoint.
  void release(const Config& config);
  Endpoint* endpoint() const { return endpoint_.get(); }

 private:
  Status open(int index, const Config& config);

  Interface interface_;
  Properties properties_;
  std::array<char, 64> name_{};  // properties_ points into these
  std::array<char, 256> pci_path_{};
  HostMemory memory_;
  std::unique_ptr<Endpoint> endpoint_;
  int users_ = 0;
};

// The interfaces that the configuration picks, one address each, at most kMaxDevices.
Result<std::vector<Interface>> choose_interfaces(const Config& config);

// Appends one line to the file; what goes wrong is a warning.
void append_statistics(const std::string& path, const std::string& line);
std::string statistics_line(const std::string& device, const EndpointStatistics& statistics);

}  // namespace weft::plugin
