// SPDX-License-Identifier: Apache-2.0
// How a burst finds its path. One selector a file, one object a connection, chosen by name at run
// time.
//
// Pure: randomness comes with the seed it was made from, time and facts with the calls. next() is
// on the data path and allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "transport/base/post.h"
#include "transport/base/units.h"

namespace weft {

class PathMask {
 public:
  void set(PathIndex path, bool on) {
    const uint64_t bit = uint64_t{1} << (path % 64);
    words_[path / 64] = on ? words_[path / 64] | bit : words_[path / 64] & ~bit;
  }
  bool test(PathIndex path) const { return words_[path / 64] >> (path % 64) & 1; }
  bool any() const { return (words_[0] | words_[1] | words_[2] | words_[3]) != 0; }

 private:
  std::array<uint64_t, kMaxPaths / 64> words_{};
};

// What an answer says about the way it took.
enum class Mark : uint8_t {
  kNone,
  kQueue,  // met a queue longer than the mark delay: as all ways do where the law keeps them full
  kEcn,    // a switch on the way says that it is congested
};

// What a selector may look at when a burst is to go.
struct Turn {
  const PathMask& usable;  // any() holds
  Time now;
  uint32_t bursts = 0;  // in flight
};

// What came back on a path.
struct PathAnswer {
  PathIndex path = 0;
  double bursts = 0;  // mostly a fraction
  Mark mark = Mark::kNone;
  Duration rtt{};  // 0: this answer tells none
  Time now;
};

class Selector {
 public:
  virtual ~Selector() = default;
  virtual std::string_view name() const = 0;
  // The path of the next burst, one that is usable; or one that is not at the moment (its ring is
  // full), and then the burst waits for it.
  virtual PathIndex next(const Turn& turn) = 0;
  virtual void on_ack(const PathAnswer& answer) = 0;
  // Copies on this path are overdue.
  virtual void on_timeout(PathIndex path, Time now) = 0;
  // The path was declared dead, or came back.
  virtual void on_alive(PathIndex path, bool alive) = 0;
};

struct SelectorConfig {
  int paths = 1;  // 1..kMaxPaths
  uint64_t seed = 0;
  Duration freeze = milliseconds(10);  // how long a time-out makes a selector wary
};

// Null when no selector has that name.
std::unique_ptr<Selector> make_selector(std::string_view name, const SelectorConfig& config);

}  // namespace weft
