// SPDX-License-Identifier: Apache-2.0
//
// A target without libFuzzer: every file of the folders given, whole, cut short at every length and
// with single bits flipped, from a fixed seed.
//
//   fuzz_packet CORPUS...
//
// Fails when a promise is broken, when there are no files, or when no file is accepted.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "transport/base/random.h"

namespace weft::fuzz {
namespace {

constexpr size_t kMostCuts = 256;
constexpr size_t kFlips = 64;

std::vector<std::filesystem::path> files_in(const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// In a block of its own, so that a sanitizer sees a read past it.
bool feed_copy(const std::vector<char>& bytes, size_t length) {
  const std::unique_ptr<std::byte[]> block(new std::byte[length]);
  std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), length, block.get());
  return feed({block.get(), length});
}

bool replay(std::vector<char> bytes) {
  const bool accepted = feed_copy(bytes, bytes.size());
  const size_t step = bytes.size() / kMostCuts + 1;
  for (size_t length = 0; length < bytes.size(); length += step) (void)feed_copy(bytes, length);
  Random random(bytes.size());
  for (size_t i = 0; i < kFlips && !bytes.empty(); ++i) {
    char& byte = bytes[random.below(bytes.size())];
    const char mask = static_cast<char>(1 << random.below(8));
    byte = static_cast<char>(byte ^ mask);
    (void)feed_copy(bytes, bytes.size());
    byte = static_cast<char>(byte ^ mask);
  }
  return accepted;
}

}  // namespace
}  // namespace weft::fuzz

int main(int argc, char** argv) {
  int files = 0, accepted = 0;
  for (int i = 1; i < argc; ++i) {
    for (const std::filesystem::path& file : weft::fuzz::files_in(argv[i])) {
      std::ifstream in(file, std::ios::binary);
      std::printf("%s\n", file.filename().c_str());
      std::fflush(stdout);  // the last one named is the one that did it
      ++files;
      accepted += weft::fuzz::replay({std::istreambuf_iterator<char>(in), {}});
    }
  }
  std::printf("%d inputs, %d accepted\n", files, accepted);
  return accepted > 0 ? 0 : 1;
}
