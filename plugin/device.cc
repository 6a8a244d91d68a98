// SPDX-License-Identifier: Apache-2.0
// From an interface to what NCCL is told of it, and to an endpoint on it.
#include "plugin/device.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "plugin/guard.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/phrase.h"
#include "transport/udp/udp.h"

namespace weft::plugin {
namespace {

constexpr int kUnknownSpeedMbps = 10000;  // loopback and most virtual links say nothing
constexpr int kMaxComms = 65536;

template <size_t N>
void copy_text(std::string_view from, std::array<char, N>* to) {
  const size_t length = std::min(from.size(), N - 1);
  std::memcpy(to->data(), from.data(), length);
  (*to)[length] = '\0';
}

// FNV-1a: the same name has the same number in every run and every build.
uint64_t number_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

int speed_of(const Interface& interface, const Config& config) {
  const double forced = config.link_gbps() * 1000;
  if (forced > 0) return std::max(1, static_cast<int>(std::lround(std::min(forced, 1e8))));
  return interface.speed_mbps > 0 ? static_cast<int>(interface.speed_mbps) : kUnknownSpeedMbps;
}

UdpFeature feature_of(Switch setting) {
  switch (setting) {
    case Switch::kOn: return UdpFeature::kOn;
    case Switch::kOff: return UdpFeature::kOff;
    case Switch::kAuto: break;
  }
  return UdpFeature::kAuto;
}

// Where the kernel has the NIC, for NCCL's topology; empty for what is no device.
std::string device_folder(const std::string& name) {
  const std::string link = "/sys/class/net/" + name + "/device";
  char resolved[PATH_MAX];
  if (::realpath(link.c_str(), resolved) == nullptr) return {};
  return resolved;
}

}  // namespace

void Device::become(const Interface& interface, const Config& config) {
  interface_ = interface;
  copy_text("weft_" + interface.name, &name_);
  const std::string folder = device_folder(interface.name);
  const bool has_path = !folder.empty() && folder.size() < pci_path_.size();
  if (has_path) copy_text(folder, &pci_path_);
  properties_ = Properties{};
  properties_.name = name_.data();
  properties_.pci_path = has_path ? pci_path_.data() : nullptr;
  properties_.guid = number_of(interface.name);
  // A registration belongs to a connection, so it does not serve every comm.
  properties_.registration_is_global = false;
  properties_.speed_mbps = speed_of(interface, config);
  properties_.max_comms = kMaxComms;
  properties_.max_receives = wire::kMaxParts;
  properties_.max_p2p_bytes = kMaxMessageBytes;
  properties_.max_collective_bytes = kMaxMessageBytes;
}

uint32_t Device::segment_bytes(const Config& config) const {
  if (config.segment_bytes() != 0) return config.segment_bytes();
  const bool ipv6 = interface_.address.ipv6;
  return segment_for_mtu(std::max(interface_.mtu, min_udp_mtu(ipv6)), ipv6);
}

Result<Endpoint*> Device::acquire(int index, const Config& config) {
  if (!endpoint_) {
    const Status opened = open(index, config);
    if (!opened.ok()) return opened;
  }
  ++users_;
  return endpoint_.get();
}

Status Device::open(int index, const Config& config) {
  UdpConfig udp;
  udp.address = interface_.address;
  udp.sockets = static_cast<int>(config.paths());
  udp.mtu = interface_.mtu;
  udp.speed_mbps = config.link_gbps() > 0 ? static_cast<uint32_t>(properties_.speed_mbps)
                                          : interface_.speed_mbps;
  udp.segment_bytes_override = config.segment_bytes();
  udp.gso = feature_of(config.udp_gso());
  udp.gro = feature_of(config.udp_gro());
  Result<std::unique_ptr<Fabric>> fabric = open_udp(udp, memory_);
  if (!fabric.ok()) {
    return {fabric.status().code(), phrase("{}: {}", name_.data(), fabric.status().words())};
  }
  EndpointOptions options;
  options.device_name = name_.data();
  options.device = static_cast<uint32_t>(index);
  options.address = udp.address;
  options.progress = config.progress();
  options.max_paths = udp.sockets;
  options.probe_sizes = config.segment_bytes() == 0;
  options.selector = config.selector();
  options.law = config.congestion();
  options.window_bytes = config.window_bytes();
  options.peer_timeout = config.peer_timeout();
  Result<std::unique_ptr<Endpoint>> endpoint =
      Endpoint::open(std::move(options), std::move(*fabric));
  if (!endpoint.ok()) return endpoint.status();
  endpoint_ = std::move(*endpoint);
  return {};
}

void Device::release(const Config& config) {
  if (--users_ > 0) return;
  if (!config.stats_path().empty()) {
    append_statistics(config.stats_path(), statistics_line(name_.data(), endpoint_->statistics()));
  }
  endpoint_.reset();
}

Result<std::vector<Interface>> choose_interfaces(const Config& config) {
  const Result<std::vector<Interface>> all = list_interfaces();
  if (!all.ok()) return all.status();
  Result<std::vector<Interface>> chosen = select_interfaces(*all, config.ifname(), config.family());
  if (!chosen.ok() && config.ifname().empty()) return chosen;
  if (!chosen.ok()) {
    return Status(chosen.status().code(),
                  phrase("WEFT_IFNAME={} (from {}): {}", config.ifname(),
                         config.where(Setting::kIfname), chosen.status().words()));
  }
  if (chosen->size() > kMaxDevices) chosen->resize(kMaxDevices);
  for (const Interface& each : *chosen) {
    if (!each.address.link_local()) continue;
    log_warn("{} has only the link-local address {}: it reaches neighbours on that link alone",
             each.name, each.address_text());
  }
  return chosen;
}

std::string statistics_line(const std::string& device, const EndpointStatistics& s) {
  std::string line = phrase("{{\"device\":\"{}\",\"paths\":[", device);
  for (size_t i = 0; i < s.paths.size(); ++i) {
    const PathCounters& path = s.paths[i];
    line += phrase("{}{{\"id\":{},\"bytes\":{},\"packets\":{},\"retransmitted\":{}}}",
                   i == 0 ? "" : ",", i, path.bytes, path.packets, path.retransmitted);
  }
  line += phrase("],\"retransmitted\":{},\"lost\":{},\"strangers\":{},\"malformed\":{}}}\n",
                 s.segments_retransmitted, s.segments_lost, s.strangers, s.malformed);
  return line;
}

void append_statistics(const std::string& path, const std::string& line) {
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
  // One write, so that lines of several processes stay whole; a pipe that is full must not stop us.
  const ssize_t written = file ? ::write(file.get(), line.data(), line.size()) : -1;
  if (written == static_cast<ssize_t>(line.size())) return;
  log_warn("WEFT_STATS={}: {}", path,
           written < 0 ? strerrordesc_np(errno) : "only a part of the line was written");
}

}  // namespace weft::plugin
