// SPDX-License-Identifier: Apache-2.0
// A library that has an older version of the interface only: the tool must say so, not crash.
extern "C" __attribute__((visibility("default"))) const int ncclNetPlugin_v8;
const int ncclNetPlugin_v8 = 0;
