// SPDX-License-Identifier: Apache-2.0
//
// A recorded run (tests/traces/README.md describes the files): the lines of every rank, what each
// has to wait for, and which receive each send ends in. Immutable once loaded, so that all threads
// of a rank read it freely. Everything in a file is checked here: ids, ranges, order of use; what
// is wrong is said with file and line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ncclnet/calls.h"

namespace weft::ncclnet {

inline constexpr int kMaxParts = 8;

struct TracePart {
  int mhandle = -1;
  uint64_t offset = 0;  // in the region of the mhandle
  uint64_t size = 0;
  int tag = 0;
};

/// "Wait until thread `thread` has finished its line number `position` (in its own list)."
struct Dependency {
  uint32_t thread;
  uint32_t position;
};

struct TraceLine {
  uint32_t number = 0;  // in the file, from 1
  uint32_t thread = 0;  // index into RankTrace::threads
  uint32_t position = 0;
  Call call = Call::kNone;
  bool null_output = false;  // connect and accept: the first attempt, which returned none
  bool optional = false;     // irecv: the optional-completion hint was given
  bool no_sizes = false;     // test: sizes was null
  bool profiler = false;     // init
  bool abandoned = false;    // isend: it was tried until the comm was closed, and never taken
  int result = 0;            // 0, or (isend and test only) ncclRemoteError
  char comm_kind = 0;        // 's' or 'r' where a call names a comm
  int context = -1, listen = -1, comm = -1, mhandle = -1, request = -1, region = -1;
  int device = 0;
  int type = 0;
  int traffic_class = -1;
  uint64_t comm_id = 0;
  uint64_t base = 0, size = 0;  // regMr
  int64_t send_attr[4] = {}, recv_attr[4] = {};
  uint32_t op = 0, algo = 0, proto = 0;
  std::string handle;  // h= of listen and connect
  std::vector<TracePart> parts;
  std::vector<int64_t> sizes;  // test
  std::vector<int> left;       // close: requests that were never reported done
  std::vector<Dependency> waits_for;
  std::string text;
};

/// Where the bytes of a part of a receive come from.
struct Source {
  int rank = -1;
  int request = -1;
  uint64_t size = 0;
};

struct RequestInfo {
  int post_line = -1;           // index into RankTrace::lines
  int test_line = -1;           // -1: never reported done in the recording
  std::vector<Source> sources;  // of an irecv, one a part
};

struct RankTrace {
  std::string file;
  std::vector<TraceLine> lines;
  std::vector<std::vector<uint32_t>> threads;  // indices into lines, in order
  std::vector<uint32_t> thread_numbers;        // as in the file
  std::vector<RequestInfo> requests;           // by id
  std::vector<int> mhandle_lines;              // the regMr of each, by id
  int contexts = 0, listens = 0, sends = 0, recvs = 0;
  std::vector<int> send_peers, recv_peers;  // the rank at the other end, by comm; -1: nobody
  bool has_end = false;  // the `# end` line, which a killed process does not write

  // Of a run that ends in the middle; indices into lines, the number of lines where there is none.
  uint32_t cut = 0;  // all before it is as in any run; first is a failed call or the tear-down
  uint32_t tear_down = 0;  // the first deregMr or close after the last call that moves data
  bool abandons = false;   // requests or sends
};

/// How a run ends.
enum class Ending : uint8_t {
  kWhole,    // all that was begun was finished
  kAborts,   // ranks close with requests open
  kPeerDies  // a rank is killed, its peers are told, and close with requests open
};

struct Trace {
  std::string name;
  std::vector<RankTrace> ranks;
  uint64_t bytes = 0;  // of all messages; where the run ends in the middle, of those received
  uint64_t messages = 0;
  Ending ending = Ending::kWhole;
};

/// kPeerDies: whether this rank is killed.
inline bool is_killed(const Trace& trace, uint32_t rank) {
  return trace.ending == Ending::kPeerDies && !trace.ranks[rank].has_end;
}

/// Reads the folder. Returns what is wrong, empty when nothing is.
std::string load_trace(const std::string& directory, Trace& trace);

// The steps of it, each in a file of its own.
std::string parse_rank(const std::string& file, RankTrace& rank);
std::string match_messages(Trace& trace);
void find_dependencies(RankTrace& rank);
std::string find_ending(Trace& trace);

}  // namespace weft::ncclnet
