// SPDX-License-Identifier: Apache-2.0
//
// Where raw settings come from: the environment and two files, each bounded and checked before use.

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
  // Non-blocking, so that a FIFO put there does not hang the job; nor may a terminal become ours.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
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

// NCCL's words for what is ours in others. Empty: NCCL does not know it either.
std::string_view translated(Setting setting, std::string_view value) {
  if (setting != Setting::kFamily) return value;
  return value == "AF_INET" ? "ipv4" : value == "AF_INET6" ? "ipv6" : "";
}

// What NCCL was told holds for us too, unless any of our own settings says otherwise: hence the
// weakest of all sources. The answer is what NCCL_SOCKET_FAMILY says when that is neither of NCCL's
// two words; NCCL takes it for nothing, without a word.
std::string offer_nccl(ConfigBuilder& builder, const std::vector<std::string>& environment) {
  std::string odd_family;
  for (const std::string& entry : environment) {
    const std::string_view view = entry;
    const std::size_t equals = view.find('=');
    if (equals == std::string_view::npos) continue;
    for (const SettingInfo& info : all_settings()) {
      if (*info.nccl == '\0' || view.substr(0, equals) != info.nccl) continue;
      const std::string_view value = trim(view.substr(equals + 1));
      const std::string_view ours = translated(info.setting, value);
      builder.offer(info.name, ours, Origin::kNccl, phrase("{} in the environment", info.nccl));
      if (info.setting == Setting::kFamily) odd_family = ours.empty() ? printable(value) : "";
    }
  }
  return odd_family;
}

bool is_name(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !name.empty() && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

void ConfigBuilder::offer_file(std::string_view content, std::string_view path, Origin origin) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as some editors leave it
  if (content.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    content.remove_prefix(kByteOrderMark.size());
  }
  for (int number = 1; !content.empty(); ++number) {
    const std::size_t newline = content.find('\n');
    const std::string_view line = trim(content.substr(0, newline));
    content.remove_prefix(newline == std::string_view::npos ? content.size() : newline + 1);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    const std::string_view name = trim(line.substr(0, equals));
    if (equals == std::string_view::npos || !is_name(name)) {
      const bool binary = line.find('\0') != std::string_view::npos;
      refuse(phrase("{}:{}: '{}' is neither NAME=VALUE nor a # comment{}", path, number,
                    printable(line), binary ? " (the file is not plain text)" : ""));
      continue;
    }
    offer(name, trim(line.substr(equals + 1)), origin, phrase("{}:{}", path, number));
  }
}

Result<Config> read_config(const ConfigSources& sources) {
  ConfigBuilder builder;
  for (const std::string& remark : sources.remarks) builder.warn(remark);
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

ConfigSources usual_sources(char** environment, bool privileged) {
  constexpr std::string_view kHome = "HOME=";
  ConfigSources sources;
  sources.system_file = "/etc/weft.conf";
  if (privileged) {
    sources.remarks.emplace_back(
        "this process has rights that its caller lacks (set-user-ID or the like): settings in the "
        "environment and in ~/.weft.conf do nothing, only those in /etc/weft.conf do");
    return sources;
  }
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    sources.environment.emplace_back(*entry);
  }
  const auto home =
      std::find_if(sources.environment.begin(), sources.environment.end(),
                   [&](const std::string& entry) { return entry.compare(0, 5, kHome) == 0; });
  if (home == sources.environment.end() || home->size() == kHome.size()) return sources;
  const std::string folder = home->substr(kHome.size());
  if (folder.front() == '/') {
    sources.user_file = folder + "/.weft.conf";
  } else {
    sources.remarks.push_back(
        phrase("HOME={} is no absolute path: ~/.weft.conf is not looked for", printable(folder)));
  }
  return sources;
}

ConfigSources usual_sources() { return usual_sources(environ, ::getauxval(AT_SECURE) != 0); }

Result<Config> load_config() { return read_config(usual_sources()); }

void apply_log_settings(const Config& config) {
  set_log_level(config.log_level());
  for (const std::string& warning : config.warnings()) log_warn("{}", warning);
  for (const SettingInfo& info : all_settings()) {
    if (config.origin(info.setting) == Origin::kDefault) continue;
    log_info("{}={} (from {})", info.name, config.text(info.setting), config.where(info.setting));
  }
}

}  // namespace weft
