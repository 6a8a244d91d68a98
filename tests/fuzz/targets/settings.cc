// SPDX-License-Identifier: Apache-2.0
// Settings from an environment (up to the first form feed, an entry a line) and a file (the rest).
// What is accepted can be said again and means the same; what is refused is refused in words that
// are bounded and can be shown.
#include "tests/fuzz/fuzz.h"
#include "transport/system/config_builder.h"
#include "transport/system/config_rows.h"

namespace weft::fuzz {
namespace {

constexpr size_t kMostWords = 16 << 10;

void check_words(const std::string& words) {
  promise(!words.empty() && words.size() < kMostWords, "words are bounded");
  promise(!has_control(words), "words can be shown");
}

// The same settings, from the environment alone.
void check_again(const Config& config) {
  ConfigSources sources;
  for (const SettingInfo& info : all_settings()) {
    if (config.origin(info.setting) == Origin::kDefault) continue;
    sources.environment.push_back(std::string(info.name) + "=" + config.text(info.setting));
  }
  const Result<Config> again = read_config(sources);
  promise(again.ok(), "what is in force is allowed");
  for (const SettingInfo& info : all_settings()) {
    promise(again->text(info.setting) == config.text(info.setting), "and reads the same");
  }
}

void check(const Result<Config>& config) {
  if (!config.ok()) return check_words(config.status().words());
  for (const std::string& warning : config->warnings()) check_words(warning);
  promise(config->warnings().size() < 100, "warnings are bounded");
  promise(config->paths() >= 1 && config->paths() <= 256, "paths are in range");
  promise(config->segment_bytes() % 128 == 0, "segments are whole lines");
  for (const SettingRow& row : setting_rows(*config)) {
    promise(!has_control(row.value) && !has_control(row.origin), "a row can be shown");
  }
  check_again(*config);
}

}  // namespace

bool feed(std::span<const std::byte> input) {
  std::string_view file = text_of(input);
  std::string_view environment = take_until(&file, '\f');
  ConfigSources sources;
  while (!environment.empty()) sources.environment.emplace_back(take_until(&environment, '\n'));
  const Result<Config> config = read_config(sources);
  check(config);

  ConfigBuilder builder;
  builder.offer_file(file, "weft.conf", Origin::kUserFile);
  const Result<Config> from_file = builder.finish();
  check(from_file);
  return config.ok() && from_file.ok();
}

}  // namespace weft::fuzz
