// SPDX-License-Identifier: Apache-2.0
// Recorded runs of two ranks, their files parted by a form feed: what is loaded refers to nothing
// that is not there.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/fuzz/fuzz.h"
#include "tools/ncclnet/trace.h"

namespace weft::fuzz {
namespace {

// A folder of this process, on a file system without a disk where there is one.
class Folder {
 public:
  Folder() {
    const bool memory = access("/dev/shm", W_OK) == 0;
    path_ = memory ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    path_ += "/weft_fuzz_XXXXXX";
    promise(mkdtemp(path_.data()) != nullptr, "a folder can be made");
  }
  ~Folder() {
    for (const char* rank : {"rank0", "rank1"}) (void)unlink(file(rank).c_str());
    (void)rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  void write(const char* rank, std::string_view text) const {
    std::ofstream(file(rank), std::ios::binary | std::ios::trunc) << text;
  }

 private:
  std::string file(const char* rank) const { return path_ + "/" + rank + ".trace"; }
  std::string path_;
};

template <class List>
bool in(int64_t index, const List& list) {
  return index >= 0 && static_cast<uint64_t>(index) < list.size();
}

void check_line(const ncclnet::RankTrace& rank, const ncclnet::TraceLine& line) {
  promise(in(line.thread, rank.threads) && in(line.position, rank.threads[line.thread]),
          "a line is one of a thread's");
  for (const ncclnet::Dependency& each : line.waits_for) {
    promise(in(each.thread, rank.threads) && in(each.position, rank.threads[each.thread]),
            "a line waits for one that is there");
    const uint32_t other = rank.threads[each.thread][each.position];
    promise(&rank.lines[other] < &line, "a line waits for what is above it");
  }
  for (const ncclnet::TracePart& part : line.parts) {
    promise(in(part.mhandle, rank.mhandle_lines), "a part is of a region that is there");
    const auto at = static_cast<size_t>(rank.mhandle_lines[static_cast<size_t>(part.mhandle)]);
    const uint64_t room = rank.lines[at].size;
    promise(part.offset <= room && part.size <= room - part.offset, "and lies inside it");
  }
  promise(line.request < 0 || in(line.request, rank.requests), "a request is there");
}

void check(const ncclnet::Trace& trace) {
  for (const ncclnet::RankTrace& rank : trace.ranks) {
    for (const ncclnet::TraceLine& line : rank.lines) check_line(rank, line);
    for (const ncclnet::RequestInfo& request : rank.requests) {
      promise(in(request.post_line, rank.lines), "a request was posted");
      promise(request.test_line < 0 || in(request.test_line, rank.lines), "and done by a line");
      for (const ncclnet::Source& source : request.sources) {
        if (source.rank < 0) continue;
        promise(in(source.rank, trace.ranks), "bytes come from a rank that is there");
        promise(in(source.request, trace.ranks[static_cast<size_t>(source.rank)].requests),
                "and from a request of it");
      }
    }
  }
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  static const Folder folder;
  std::string_view second = text_of(input);
  folder.write("rank0", take_until(&second, '\f'));
  folder.write("rank1", second);
  ncclnet::Trace trace;
  const std::string why = ncclnet::load_trace(folder.path(), trace);
  if (why.empty()) check(trace);
  return why.empty();
}

}  // namespace weft::fuzz
