// SPDX-License-Identifier: Apache-2.0
//
// Loads the plugin as a C program would, and asks what NCCL asks before it opens a connection:
//
//   load_test PLUGIN [ROUNDS]
//
// Each round: dlopen, find ncclNetPlugin_v11, init, devices, getProperties of each, finalize,
// dlclose. After every round the process must be as it was after the first: no more descriptors, no
// more threads, no more heap in use, and the plugin really unloaded. The declarations below are
// this test's own, by the offsets that NCCL's headers give on x86-64, so that a slip in the
// plugin's headers shows here.
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*logger_t)(int level, unsigned long flags, const char* where, int line,
                         const char* format, ...);

struct properties {
  char* name;
  char* pci_path;
  uint64_t guid;
  int ptr_support, reg_is_global, force_flush, speed, port;
  float latency;
  int max_comms, max_recvs, device_type, device_version;
  struct {
    int ndevs;
    int devs[4];
  } virtual_devices;
  size_t max_p2p_bytes, max_coll_bytes;
  int max_multi_request_size;
};
_Static_assert(sizeof(struct properties) == 112, "size of v11 properties");
_Static_assert(offsetof(struct properties, speed) == 36, "offset of speed");
_Static_assert(offsetof(struct properties, max_p2p_bytes) == 88, "offset of maxP2pBytes");

struct comm_config {
  int traffic_class;
};

struct net_v11 {
  const char* name;
  int (*init)(void** ctx, uint64_t comm_id, struct comm_config* config, logger_t logger,
              void* profiler);
  int (*devices)(int* count);
  int (*get_properties)(int device, struct properties* properties);
  void* unused_here[16];  // listen to makeVDevice
  int (*finalize)(void* ctx);
  int (*set_net_attr)(void* ctx, void* attributes);
};
_Static_assert(sizeof(struct net_v11) == 176, "size of the v11 table");
_Static_assert(offsetof(struct net_v11, finalize) == 160, "offset of finalize");

static int fail(int round, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("FAIL round %d: ", round);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  return 1;
}

static void print_log(int level, unsigned long flags, const char* where, int line,
                      const char* format, ...) {
  (void)flags;
  va_list arguments;
  va_start(arguments, format);
  printf("[log %d %s:%d] ", level, where != NULL ? where : "?", line);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

static int count_entries(const char* folder) {
  DIR* directory = opendir(folder);
  if (directory == NULL) return -1;
  int count = 0;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;)
    count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

// A joined thread's /proc entry may outlive pthread_join by a moment: wait for it, at most 5 s.
static int settle(const char* folder, int wanted) {
  int count = count_entries(folder);
  for (int i = 0; count > wanted && i < 500; ++i) {
    const struct timespec pause = {0, 10 * 1000 * 1000};
    nanosleep(&pause, NULL);
    count = count_entries(folder);
  }
  return count;
}

static int check_device(int round, const struct net_v11* net, int device) {
  struct properties p;
  memset(&p, 0, sizeof p);
  const int result = net->get_properties(device, &p);
  if (result != 0) return fail(round, "getProperties(%d) returned %d", device, result);
  if (p.name == NULL || p.name[0] == '\0') return fail(round, "device %d has no name", device);
  if (p.speed <= 0) return fail(round, "device %d has speed %d", device, p.speed);
  if ((p.ptr_support & 1) == 0) return fail(round, "device %d takes no host memory", device);
  if (p.max_comms < 1 || p.max_recvs < 1) {
    return fail(round, "device %d: maxComms %d, maxRecvs %d", device, p.max_comms, p.max_recvs);
  }
  if (p.max_p2p_bytes == 0 || p.max_p2p_bytes > (size_t)1 << 40) {
    return fail(round, "device %d: maxP2pBytes %zu is outside (0, 1 TiB]", device, p.max_p2p_bytes);
  }
  if (round == 0) {
    printf("device %d: %s, %d Mbit/s, maxRecvs %d, ptrSupport %#x\n", device, p.name, p.speed,
           p.max_recvs, (unsigned)p.ptr_support);
  }
  return 0;
}

static int use(int round, const struct net_v11* net) {
  if (net->name == NULL || strcmp(net->name, "Weft") != 0) {
    return fail(round, "name is '%s', not 'Weft'", net->name != NULL ? net->name : "(null)");
  }
  void* ctx = NULL;
  struct comm_config config = {-1};  // undefined, as NCCL says it
  int result = net->init(&ctx, 1, &config, print_log, NULL);
  if (result != 0) return fail(round, "init returned %d", result);
  int devices = 0;
  result = net->devices(&devices);
  if (result != 0 || devices < 1) return fail(round, "devices: %d, returned %d", devices, result);
  int failed = 0;
  for (int device = 0; device < devices && !failed; ++device)
    failed = check_device(round, net, device);
  if (!failed) {
    struct properties p;
    if (net->get_properties(devices, &p) == 0 || net->get_properties(-1, &p) == 0) {
      failed = fail(round, "getProperties accepts a device that is not there");
    }
  }
  result = net->finalize(ctx);
  if (result != 0) return fail(round, "finalize returned %d", result);
  return failed;
}

static int one_round(int round, const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fail(round, "%s", dlerror());
  const struct net_v11* net = dlsym(library, "ncclNetPlugin_v11");
  int failed = net == NULL ? fail(round, "%s", dlerror()) : use(round, net);
  dlclose(library);
  if (!failed && dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL) {
    failed = fail(round, "the plugin stayed loaded after dlclose");
  }
  return failed;
}

static const size_t kHeapSlack = 3000;

int main(int argc, char** argv) {
  const int rounds = argc == 3 ? (int)strtol(argv[2], NULL, 10) : 1;
  if (argc < 2 || argc > 3 || rounds < 1 || rounds > 100000) {
    fprintf(stderr, "usage: %s PLUGIN [ROUNDS]\n", argv[0]);
    return 2;
  }
  const int threads = count_entries("/proc/self/task");
  int descriptors = 0;
  size_t heap = 0;
  for (int round = 0; round < rounds; ++round) {
    if (one_round(round, argv[1]) != 0) return 1;
    const int threads_now = settle("/proc/self/task", threads);
    if (threads_now > threads) {
      return fail(round, "%d threads, %d before the plugin was loaded", threads_now, threads);
    }
    // The first round may open what glibc keeps (none is known to); later ones may not.
    const int descriptors_now = count_entries("/proc/self/fd");
    if (round == 0) descriptors = descriptors_now;
    if (descriptors_now > descriptors) {
      return fail(round, "%d file descriptors, %d after the first round", descriptors_now,
                  descriptors);
    }
    // Once more, since the second may find what the first left to glibc; 64 bytes a round would
    // show.
    const size_t heap_now = mallinfo2().uordblks;
    if (round <= 1) heap = heap_now;
    if (heap_now > heap + kHeapSlack) {
      return fail(round, "%zu bytes of heap, %zu after the second round", heap_now, heap);
    }
  }
  printf("PASS rounds=%d threads=%d descriptors=%d\n", rounds, threads, descriptors);
  return 0;
}
