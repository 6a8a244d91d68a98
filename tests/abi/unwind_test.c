// SPDX-License-Identifier: Apache-2.0
//
// Loads unwind_probe (argument 1), has it throw, and unloads it, several times over: unwinding must
// work for an object that came, went and came again, perhaps at another address.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
    return 2;
  }
  for (int round = 0; round < 20; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      printf("FAIL round %d: %s\n", round, dlerror());
      return 1;
    }
    unsigned (*probe)(void) = NULL;
    *(void**)&probe = dlsym(library, "ncclNetPlugin_v0_probe");
    if (probe == NULL) {
      printf("FAIL round %d: %s\n", round, dlerror());
      return 1;
    }
    const unsigned seen = probe();
    if (seen != 15) {
      printf("FAIL round %d: saw %#x of 0xf: an exception was not caught where it should be\n",
             round, seen);
      return 1;
    }
    dlclose(library);
    if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL) {
      printf("FAIL round %d: the library stayed loaded after dlclose\n", round);
      return 1;
    }
  }
  printf("PASS 20 rounds\n");
  return 0;
}
