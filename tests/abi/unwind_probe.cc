// SPDX-License-Identifier: Apache-2.0
//
// Linked exactly as the plugin is, this does what could show that link to be wrong: throws through
// frames with destructors, out of library code (at, fmt), inside a thread, and rethrows across
// threads. Exported under a name that the plugin's version script lets through. Called by
// unwind_test.c, a C program without any libstdc++ of its own.
#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

int alive = 0;
struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
};

int fall(int depth, const std::string& words) {
  const Counted counted;
  if (depth == 0) throw std::runtime_error(words);
  return fall(depth - 1, words) + 1;  // the addition keeps this from being a tail call
}

// One bit per thing seen.
unsigned throw_everything() {
  unsigned seen = 0;
  std::unordered_map<std::string, std::function<int()>> calls;
  calls[fmt::format("{:>8}", "deep")] = [] { return fall(100, std::string(300, 'x')); };
  try {
    for (auto& [name, call] : calls) call();
  } catch (const std::exception& error) {
    if (std::string(error.what()).size() == 300 && alive == 0) seen |= 1;
  }
  try {
    std::vector<int> empty;
    (void)empty.at(3);
  } catch (const std::out_of_range&) {
    seen |= 2;
  }
  try {
    (void)fmt::format(fmt::runtime("{:d}"), "text");
  } catch (const fmt::format_error&) {
    seen |= 4;
  }
  return seen;
}

unsigned run() {
  unsigned seen = 0;
  std::exception_ptr carried;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread thread([&] {
    const unsigned inside = throw_everything();
    try {
      fall(3, "carried");
    } catch (...) {
      carried = std::current_exception();
    }
    const std::lock_guard guard(mutex);
    seen |= inside;
    done = true;
    changed.notify_one();
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done; });
  }
  thread.join();
  try {
    if (carried) std::rethrow_exception(carried);
  } catch (const std::runtime_error& error) {
    if (std::string("carried") == error.what()) seen |= 8;
  }
  return seen;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) unsigned ncclNetPlugin_v0_probe() {
  try {
    return run();
  } catch (...) {
    return 0;
  }
}
