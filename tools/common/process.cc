// SPDX-License-Identifier: Apache-2.0
// fork, namespace, descriptors, exec; see process.h. Between fork and exec only system calls.
#include "tools/common/process.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace weft::tools {
namespace {

constexpr int kFirstSpare = 200;  // above all fixed numbers that children use

// Enters the namespace and gives the child a view of /sys that fits it, as `ip netns exec` does;
// the latter is for plugins that read /sys/class and does no harm when it is refused.
bool enter_namespace(int fd) {
  if (::setns(fd, CLONE_NEWNET) != 0) return false;
  if (::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", "none", MS_SLAVE | MS_REC, nullptr) == 0) {
    (void)!::mount("sysfs", "/sys", "sysfs", 0, nullptr);
  }
  return true;
}

// In the child. Descriptors are first moved out of the way, so that no target number is still
// the source of a later one.
[[noreturn]] void become(const SpawnOptions& options, char* const* argv, char* const* env,
                         pid_t parent, int failure) {
  int error = 0;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before the line above
  int moved[16];
  size_t count = 0;
  const int report = ::fcntl(failure, F_DUPFD_CLOEXEC, kFirstSpare);
  if (report < 0) {  // the limit of open files is below any spare number: nothing can be moved
    error = errno == EINVAL ? EMFILE : errno;
    (void)!::write(failure, &error, sizeof error);
    ::_exit(127);
  }
  for (const auto& [from, to] : options.inherit) {
    if (count == 16) break;
    moved[count] = ::fcntl(from, F_DUPFD_CLOEXEC, kFirstSpare);
    if (moved[count++] < 0) error = errno;
  }
  if (options.network_namespace >= 0 && !enter_namespace(options.network_namespace)) error = errno;
  for (size_t i = 0; i < count && error == 0; ++i) {
    if (::dup2(moved[i], options.inherit[i].second) < 0) error = errno;  // clears CLOEXEC
  }
  if (error == 0) {
    ::execve("/proc/self/exe", argv, env);
    error = errno;
  }
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

std::vector<std::string> merged_environment(const std::vector<std::string>& over) {
  std::vector<std::string> all = over;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    const std::string name = entry.substr(0, entry.find('=') + 1);
    bool replaced = false;
    for (const std::string& o : over) replaced = replaced || o.compare(0, name.size(), name) == 0;
    if (!replaced) all.push_back(entry);
  }
  return all;
}

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string describe_status(int status) {
  if (WIFEXITED(status)) return fmt::format("exit status {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) {
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("wait status {}", status);
}

std::optional<int> Child::poll() {
  if (pid_ <= 0) return status_;
  int status = 0;
  const pid_t got = ::waitpid(pid_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  pid_ = -1;
  status_ = got < 0 ? 0x7f00 : status;
  return status_;
}

void Child::kill_and_reap() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  status_ = status;
}

Child spawn(const SpawnOptions& options, std::string& why) {
  const std::vector<std::string> environment = merged_environment(options.environment);
  const std::vector<char*> argv = pointers_to(options.arguments);
  const std::vector<char*> env = pointers_to(environment);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    why = fmt::format("pipe: {}", std::strerror(errno));
    return {};
  }
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(options, argv.data(), env.data(), parent, write_end.get());
  if (pid < 0) {
    why = fmt::format("fork: {}", std::strerror(errno));
    return {};
  }
  Child child(pid);
  write_end.reset();
  int error = 0;
  // The pipe closes at exec: nothing read means that the child runs.
  if (::read(read_end.get(), &error, sizeof error) == sizeof error) {
    why = fmt::format("cannot start a rank{}: {}",
                      options.network_namespace >= 0 ? " in its network namespace" : "",
                      std::strerror(error));
    errno = error;
    return {};
  }
  return child;
}

UniqueFd open_network_namespace(const std::string& name, std::string& why) {
  const std::string path = name.find('/') == std::string::npos ? "/run/netns/" + name : name;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    why = fmt::format("no network namespace {} ({}: {}); `ip netns list` shows those there are",
                      name, path, std::strerror(errno));
  } else if (::ioctl(fd.get(), NS_GET_NSTYPE) != CLONE_NEWNET) {
    why = fmt::format("{} is no network namespace; `ip netns list` shows those there are", path);
    errno = EINVAL;
    return {};
  }
  return fd;
}

}  // namespace weft::tools
