// SPDX-License-Identifier: Apache-2.0
// Two threads add to one number without a word to each other: ThreadSanitizer has to see it, or its
// silence about the rest means nothing. Exit code 0: it saw.
#include <atomic>
#include <cstdio>
#include <thread>

namespace {
std::atomic<int> reports{0};
int shared_number = 0;

void add() {
  for (int i = 0; i < 1000; ++i) ++shared_number;
}
}  // namespace

// Called by ThreadSanitizer with each report.
extern "C" __attribute__((visibility("default"))) void __tsan_on_report(void*) {
  reports.fetch_add(1);
}

int main() {
  std::thread other(add);
  add();
  other.join();
  std::printf("%d reports of a planted race (%d)\n", reports.load(), shared_number);
  return reports.load() > 0 ? 0 : 1;
}
