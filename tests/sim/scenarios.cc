// SPDX-License-Identifier: Apache-2.0
// The networks, each a few numbers away from a clean one.
#include "tests/sim/scenarios.h"

namespace weft::test {
namespace {

constexpr double kTenth = 0.1;

Scenario datagram(const char* name) {
  Scenario s{name, {}, {}, false};
  s.traffic.flows = 3;
  s.traffic.messages = 16;
  s.traffic.largest = 64 << 10;
  return s;
}

Scenario placing(const char* name) {
  Scenario s{name, {}, {}, false};
  s.network.mode = sim::Mode::kPlacing;
  s.traffic.flows = 3;
  s.traffic.messages = 12;
  s.traffic.largest = 192 << 10;
  s.traffic.segment_bytes = 4096;
  return s;
}

// 10% of everything: loss of data and control, and what else each kind of fabric does.
Scenario lossy(Scenario s) {
  sim::SimFaults& f = s.network.faults;
  f.loss = kTenth;
  f.refuse = 0.05;
  if (s.network.mode == sim::Mode::kDatagram) {
    f.duplicate = f.reorder = kTenth;
  } else {
    f.late = f.control_loss = f.control_duplicate = f.control_reorder = kTenth;
    f.partial_writes = true;
  }
  return s;
}

std::vector<Scenario> make() {
  std::vector<Scenario> all;
  all.push_back(datagram("datagram-clean"));
  all.back().clean = true;
  all.push_back(lossy(datagram("datagram-lossy")));

  all.push_back(placing("placing-clean"));
  all.back().clean = true;
  all.push_back(lossy(placing("placing-lossy")));
  all.push_back(lossy(placing("placing-unordered-lossy")));
  all.back().network.ordered_path = false;

  all.push_back(placing("placing-reliable-breaking"));
  all.back().network.reliable = true;
  all.back().network.faults.break_path = 0.01;
  all.back().network.faults.control_loss = kTenth;

  // One path dies silently and comes back; another for good.
  all.push_back(lossy(datagram("datagram-blackholes")));
  all.back().network.blackholes = {{1, -1, Time{} + microseconds(300), Time{} + milliseconds(30)},
                                   {2, 0, Time{} + microseconds(200), Time::never()}};
  all.push_back(lossy(placing("placing-blackholes")));
  all.back().network.blackholes = {{1, -1, Time{} + microseconds(300), Time{} + milliseconds(30)},
                                   {2, 0, Time{} + microseconds(200), Time::never()}};

  // A path that moves to a longer and then to a shorter way: old writes land behind younger ones.
  all.push_back(lossy(placing("placing-rehash")));
  all.back().network.rehashes = {{0, Time{} + microseconds(200), microseconds(45)},
                                 {0, Time{} + microseconds(600), microseconds(20)},
                                 {3, Time{} + microseconds(400), microseconds(30)}};

  // A host that does not run for a while blames nobody for it.
  all.push_back(lossy(datagram("datagram-pauses")));
  all.back().network.pauses = {{0, Time{} + microseconds(200), Time{} + milliseconds(40)},
                               {1, Time{} + milliseconds(50), Time{} + milliseconds(200)}};
  all.push_back(lossy(placing("placing-pauses")));
  all.back().network.pauses = {{0, Time{} + microseconds(200), Time{} + milliseconds(40)},
                               {1, Time{} + milliseconds(50), Time{} + milliseconds(200)}};

  // One path only: nothing to fall back on.
  all.push_back(lossy(datagram("datagram-single-path")));
  all.back().network.paths = 1;
  all.push_back(lossy(placing("placing-single-path")));
  all.back().network.paths = 1;
  return all;
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = make();
  return all;
}

}  // namespace weft::test
