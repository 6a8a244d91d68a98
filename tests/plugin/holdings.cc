// SPDX-License-Identifier: Apache-2.0
// Descriptors that are sockets, looked up by inode in /proc/net; and counting.
#include "tests/plugin/holdings.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace weft::plugin_test {
namespace {

constexpr int kMaxDescriptors = 4096;
constexpr const char* kListening = "0A";

std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> inodes;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd/";
  for (int fd = 0; fd < kMaxDescriptors; ++fd) {
    char target[64] = {};
    if (::readlink((folder + std::to_string(fd)).c_str(), target, sizeof target - 1) < 0) continue;
    const std::string text = target;
    if (text.rfind("socket:[", 0) == 0) inodes.insert(text.substr(8, text.size() - 9));
  }
  return inodes;
}

std::set<int> ports(pid_t pid, const char* table_name, const char* state) {
  const std::set<std::string> inodes = sockets_of(pid);
  std::set<int> found;
  std::ifstream table(table_name);
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
    if (word.size() < 10 || inodes.count(word[9]) == 0) continue;
    if (state != nullptr && word[3] != state) continue;
    found.insert(std::stoi(word[1].substr(word[1].find(':') + 1), nullptr, 16));
  }
  return found;
}

}  // namespace

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < kMaxDescriptors; ++fd) count += ::fcntl(fd, F_GETFD) != -1;
  return count;
}

size_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::set<int> udp_ports(pid_t pid) { return ports(pid, "/proc/net/udp", nullptr); }
std::set<int> tcp_listening_ports(pid_t pid) { return ports(pid, "/proc/net/tcp", kListening); }

}  // namespace weft::plugin_test
