// SPDX-License-Identifier: Apache-2.0
// The target as libFuzzer calls it.
#include "tests/fuzz/fuzz.h"

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t* data,
                                                                             size_t size) {
  (void)weft::fuzz::feed(std::as_bytes(std::span(data, size)));
  return 0;
}
