// SPDX-License-Identifier: Apache-2.0
//
// A library with the faults that check_link.py looks for, to see that it finds them: it needs
// libstdc++.so, exports a symbol that is not a table, lacks the tables, and asks for arc4random,
// which glibc 2.34 does not have.
#include <stdlib.h>

#include <string>

#ifndef __GLIBC_PREREQ
#define __GLIBC_PREREQ(a, b) 0
#endif

extern "C" __attribute__((visibility("default"))) unsigned weft_should_not_be_seen(int n) {
  const std::string text(static_cast<std::size_t>(n), 'x');
#if __GLIBC_PREREQ(2, 36)
  return static_cast<unsigned>(text.size()) + arc4random();
#else
  return static_cast<unsigned>(text.size());
#endif
}
