// SPDX-License-Identifier: Apache-2.0
//
// Where raw settings come from: the environment and two files, each bounded and checked before use.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "transport/system/config.h"
#include "transport/system/config_builder.h"
#include "transport/system/file_descriptor.h"
#include "transport/system/phrase.h"

namespace weft {
namespace {

constexpr std::size_t kMaxFileBytes = 64 * 1024;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// The content of a regular file of bounded size; the words say why not, empty for "no such file".
Result<std::string> read_file(const std::string& path) {
  // Non-blocking, so that a FIFO put there does not hang the job.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    return Status(Code::kUnavailable, absent ? "" : strerrordesc_np(errno));
  }
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return Status(Code::kUnavailable, "not a regular file");
  }
  std::string content(kMaxFileBytes + 1, '\0');
  std::size_t length = 0;
  while (length < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + length, content.size() - length);
    if (got < 0) return Status(Code::kUnavailable, strerrordesc_np(errno));
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kMaxFileBytes) {
    return Status(Code::kUnavailable, phrase("larger than {} bytes", kMaxFileBytes));
  }
  content.resize(length);
  return content;
}

void offer_path(ConfigBuilder& builder, const std::string& path, Origin origin) {
  if (path.empty()) return;
  const Result<std::string> content = read_file(path);
  if (content.ok()) {
    builder.offer_file(*content, path, origin);
  } else if (!content.status().words().empty()) {
    builder.warn(phrase("{} is ignored: {}", path, content.status().words()));
  }
}

void offer_environment(ConfigBuilder& builder, const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    const std::string_view view = entry;
    const std::size_t equals = view.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = view.substr(0, equals);
    if (name.substr(0, 5) != "WEFT_") continue;
    builder.offer(name, trim(view.substr(equals + 1)), Origin::kEnvironment, "the environment");
  }
}

// What NCCL was told about interfaces and addresses holds for us too, unless any of our own
// settings says otherwise: hence the weakest of all sources. The answer is what NCCL_SOCKET_FAMILY
// says when that is neither of NCCL's two words; NCCL takes it for nothing, without a word.
std::string offer_nccl(ConfigBuilder& builder, const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "NCCL_SOCKET_IFNAME=";
  constexpr std::string_view kFamily = "NCCL_SOCKET_FAMILY=";
  std::string odd_family;
  for (const std::string& entry : environment) {
    const std::string_view view = entry;
    if (view.substr(0, kName.size()) == kName) {
      builder.offer("WEFT_IFNAME", trim(view.substr(kName.size())), Origin::kEnvironment,
                    "NCCL_SOCKET_IFNAME in the environment");
    } else if (view.substr(0, kFamily.size()) == kFamily) {
      const std::string_view family = trim(view.substr(kFamily.size()));
      const char* ours = family == "AF_INET" ? "ipv4" : family == "AF_INET6" ? "ipv6" : "";
      builder.offer("WEFT_FAMILY", ours, Origin::kEnvironment,
                    "NCCL_SOCKET_FAMILY in the environment");
      odd_family = *ours == '\0' ? family.substr(0, 64) : "";
    }
  }
  return odd_family;
}

}  // namespace

void ConfigBuilder::offer_file(std::string_view content, std::string_view path, Origin origin) {
  for (int number = 1; !content.empty(); ++number) {
    const std::size_t newline = content.find('\n');
    const std::string_view line = trim(content.substr(0, newline));
    content.remove_prefix(newline == std::string_view::npos ? content.size() : newline + 1);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      errors_.push_back(phrase("{}:{}: '{}' is neither NAME=VALUE nor a # comment", path, number,
                               line.substr(0, 64)));
      continue;
    }
    offer(trim(line.substr(0, equals)), trim(line.substr(equals + 1)), origin,
          phrase("{}:{}", path, number));
  }
}

Result<Config> read_config(const ConfigSources& sources) {
  ConfigBuilder builder;
  const std::string odd_family = offer_nccl(builder, sources.environment);
  offer_path(builder, sources.system_file, Origin::kSystemFile);
  offer_path(builder, sources.user_file, Origin::kUserFile);
  offer_environment(builder, sources.environment);
  if (!odd_family.empty() && !builder.is_set(Setting::kFamily)) {
    builder.warn(phrase(
        "NCCL_SOCKET_FAMILY={} (from the environment) is not known and does nothing: allowed is "
        "AF_INET or AF_INET6; WEFT_FAMILY says the same to Weft alone",
        odd_family));
  }
  return builder.finish();
}

Result<Config> load_config() {
  ConfigSources sources;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    sources.environment.emplace_back(*entry);
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    sources.user_file = std::string(home) + "/.weft.conf";
  }
  sources.system_file = "/etc/weft.conf";
  return read_config(sources);
}

void apply_log_settings(const Config& config) {
  set_log_level(config.log_level());
  for (const std::string& warning : config.warnings()) log_warn("{}", warning);
}

}  // namespace weft
