// SPDX-License-Identifier: Apache-2.0
// TOML into a scenario, every key checked; see scenario.h.
#include "tools/sim/scenario.h"

#include <cstdint>
#include <filesystem>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "tools/sim/permutation.h"

namespace weft::simtool {
namespace {

using Shape = sim::TopologyConfig::Shape;
using What = sim::CableFault::What;
using Traffic = Scenario::Traffic;

const std::map<std::string, Shape> kShapes = {{"two-hosts", Shape::kTwoHosts},
                                              {"leaf-spine", Shape::kLeafSpine},
                                              {"fat-tree", Shape::kFatTree},
                                              {"rail", Shape::kRail}};
const std::map<std::string, Traffic> kTraffic = {
    {"pair", Traffic::kPair}, {"permutation", Traffic::kPermutation}, {"incast", Traffic::kIncast}};
const std::map<std::string, What> kFaults = {{"silent", What::kSilent},
                                             {"slow", What::kSlow},
                                             {"lossy", What::kLossy},
                                             {"marks", What::kMarks}};

// Reads the keys of one table; the first thing that is wrong stays in `why`.
class Reader {
 public:
  Reader(const toml::table* table, std::string name, std::string* why)
      : table_(table), name_(std::move(name)), why_(why) {
    if (!table_) wrong("is missing");
  }
  // All keys were asked for, or the file says what nobody understands.
  ~Reader() {
    if (!table_) return;
    for (const auto& [key, value] : *table_) {
      if (!known_.contains(std::string(key.str())))
        wrong(fmt::format("has '{}', which nothing knows", key.str()));
    }
  }

  double number(const std::string& key, double low, double high,
                std::optional<double> otherwise = {}) {
    const toml::node* node = get(key);
    const auto value = node ? node->value<double>() : otherwise;
    if (!value) {
      wrong(fmt::format("needs {} = a number", key));
    } else if (!(*value >= low && *value <= high)) {
      wrong(fmt::format("has {} = {:g}; it is from {:g} to {:g}", key, *value, low, high));
    } else {
      return *value;
    }
    return low;
  }
  uint64_t whole(const std::string& key, double low, double high,
                 std::optional<double> otherwise = {}) {
    return static_cast<uint64_t>(number(key, low, high, otherwise));
  }
  std::string words(const std::string& key) {
    const toml::node* node = get(key);
    const auto value = node ? node->value<std::string>() : std::nullopt;
    if (!value) wrong(fmt::format("needs {} = \"...\"", key));
    return value.value_or("");
  }
  template <class T>
  T one_of(const std::string& key, const std::map<std::string, T>& choices) {
    const std::string word = words(key);
    const auto it = choices.find(word);
    if (it != choices.end()) return it->second;
    std::string all;
    for (const auto& [name, value] : choices) all += (all.empty() ? "" : ", ") + name;
    wrong(fmt::format("has {} = \"{}\"; it is one of {}", key, word, all));
    return choices.begin()->second;
  }

 private:
  const toml::node* get(const std::string& key) {
    known_[key] = true;
    return table_ ? table_->get(key) : nullptr;
  }
  void wrong(const std::string& what) {
    if (why_->empty()) *why_ = name_ + " " + what;
  }

  const toml::table* table_;
  const std::string name_;
  std::string* why_;
  std::map<std::string, bool> known_;
};

void read_network(const toml::table* table, Scenario& s, std::string* why) {
  Reader r(table, "[network]", why);
  sim::TopologyConfig& t = s.topology;
  t.shape = r.one_of("shape", kShapes);
  const bool tree = t.shape == Shape::kFatTree;
  t.hosts = static_cast<uint32_t>(r.whole("hosts", 2, 65536, 2));
  t.hosts_per_leaf = static_cast<uint32_t>(r.whole("hosts_per_leaf", 1, 1024, 1));
  t.spines = static_cast<uint32_t>(r.whole("spines", 1, 1024, 1));
  t.rails = static_cast<uint32_t>(r.whole("rails", 1, 64, 1));
  t.leaves_per_pod = static_cast<uint32_t>(
      r.whole("leaves_per_pod", 1, 256, tree ? std::nullopt : std::optional(1.0)));
  t.aggregations_per_pod = static_cast<uint32_t>(
      r.whole("aggregations_per_pod", 1, 256, tree ? std::nullopt : std::optional(1.0)));
  t.cores_per_aggregation = static_cast<uint32_t>(
      r.whole("cores_per_aggregation", 1, 256, tree ? std::nullopt : std::optional(1.0)));
  t.cable.bits_per_second = static_cast<uint64_t>(r.number("gbps", 0.001, 10000) * 1e9);
  t.cable.delay = nanoseconds(static_cast<int64_t>(r.number("delay_us", 0, 1e6, 1) * 1000));
  t.cable.queue_bytes = r.whole("queue_bytes", 1000, 1e12);
  t.cable.control_first = r.whole("control_first", 0, 1, 1) != 0;
  s.mark_from = r.whole("ecn_from_bytes", 0, 1e12, 0);
  s.mark_all = r.whole("ecn_all_bytes", 0, 1e12, 0);
}

void read_fault(const toml::table* table, Scenario& s, std::string* why) {
  Reader r(table, "[[fault]]", why);
  NamedFault named;
  named.cable = r.words("cable");
  named.fault.what = r.one_of("what", kFaults);
  named.fault.share = r.number("share", 0, 1, 0);
  named.fault.from = Time{static_cast<int64_t>(r.number("from_us", 0, 1e9, 0) * 1000)};
  const double until = r.number("until_us", 0, 1e9, 0);
  if (until > 0) named.fault.until = Time{static_cast<int64_t>(until * 1000)};
  s.faults.push_back(named);
}

void read_traffic(const toml::table* table, Scenario& s, std::string* why) {
  Reader r(table, "[traffic]", why);
  s.traffic = r.one_of("kind", kTraffic);
  s.bytes = r.whole("bytes", 1, 1 << 30);
  s.senders = static_cast<uint32_t>(r.whole("senders", 0, 65535, 0));
  if (s.traffic == Traffic::kIncast && (s.senders == 0 || s.senders >= s.topology.hosts) &&
      why->empty()) {
    *why = "[traffic] needs senders, fewer than hosts";
  }
}

}  // namespace

std::vector<Transfer> Scenario::transfers(uint32_t seed) const {
  std::vector<Transfer> all;
  const uint32_t hosts = topology.hosts;
  switch (traffic) {
    case Traffic::kPair: all.push_back({0, hosts - 1, bytes, {}}); break;
    case Traffic::kPermutation: {
      const std::vector<uint32_t> to = permutation(hosts, seed);
      for (uint32_t from = 0; from < hosts; ++from) all.push_back({from, to[from], bytes, {}});
      break;
    }
    case Traffic::kIncast:  // from all over the network to its first host
      for (uint32_t i = 0; i < senders; ++i)
        all.push_back(
            {hosts - 1 - static_cast<uint32_t>(uint64_t{i} * (hosts - 1) / senders), 0, bytes, {}});
  }
  return all;
}

std::optional<Scenario> load_scenario(const std::string& file, std::string* why) {
  *why = {};
  toml::table root;
  try {
    root = toml::parse_file(file);
  } catch (const toml::parse_error& error) {
    *why = fmt::format("{} line {}: {}", file, error.source().begin.line, error.description());
    return std::nullopt;
  }
  Scenario s;
  s.name = std::filesystem::path(file).stem().string();
  s.title = root["title"].value_or(std::string());
  for (const auto& [key, value] : root) {
    const std::string_view k = key.str();
    if (k != "title" && k != "network" && k != "traffic" && k != "fault" && k != "reference")
      *why = fmt::format("'{}' is nothing a scenario has", k);
  }
  if (why->empty()) read_network(root["network"].as_table(), s, why);
  if (why->empty()) read_traffic(root["traffic"].as_table(), s, why);
  if (const toml::array* faults = root["fault"].as_array(); faults && why->empty()) {
    for (const toml::node& fault : *faults) read_fault(fault.as_table(), s, why);
  }
  if (const toml::table* reference = root["reference"].as_table()) {
    for (const auto& [key, value] : *reference)
      s.reference[std::string(key.str())] = value.value_or(0.0);
  }
  if (why->empty()) return s;
  *why = file + ": " + *why;
  return std::nullopt;
}

}  // namespace weft::simtool
