// SPDX-License-Identifier: Apache-2.0
// The copy that keeps lines whole (transport/memory.h), against memcpy, which does not.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "transport/memory.h"

namespace weft {
namespace {

// Walks a buffer larger than the caches, as a receiver does.
template <class Copy>
void walk(benchmark::State& state, Copy copy) {
  const auto bytes = static_cast<size_t>(state.range(0));
  std::vector<std::byte> to(64 << 20), from(bytes, std::byte{1});
  size_t at = 0;
  for (auto _ : state) {
    copy(to.data() + at, from.data(), bytes);
    benchmark::DoNotOptimize(to.data());
    at += bytes;
    if (at + bytes > to.size()) at = 0;
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * state.range(0));
}

void CopyLines(benchmark::State& state) { walk(state, copy_lines); }
void Memcpy(benchmark::State& state) { walk(state, std::memcpy); }
BENCHMARK(CopyLines)->Arg(1408)->Arg(57344);
BENCHMARK(Memcpy)->Arg(1408)->Arg(57344);

}  // namespace
}  // namespace weft

BENCHMARK_MAIN();
