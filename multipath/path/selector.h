// SPDX-License-Identifier: Apache-2.0
// How a burst finds its path. One selector a file, one object a connection, chosen by name at run
// time.
//
// Pure: randomness comes with the seed it was made from, facts with the calls. next() is on the
// data path and allocates nothing.
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

class Selector {
 public:
  virtual ~Selector() = default;
  virtual std::string_view name() const = 0;
  // A path among those whose bit is set; precondition: usable.any().
  virtual PathIndex next(const PathMask& usable) = 0;
  virtual void on_ack(PathIndex path, bool marked) = 0;
  virtual void on_timeout(PathIndex path) = 0;
};

// Null when no selector has that name. `paths` in 1..kMaxPaths.
std::unique_ptr<Selector> make_selector(std::string_view name, int paths, uint64_t seed);

}  // namespace weft
