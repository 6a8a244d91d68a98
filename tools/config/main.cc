// SPDX-License-Identifier: Apache-2.0
//
// weft_config: what Weft would be set to in a process started here and now, and where from. It
// reads what the plugin reads, by the same code, so a value that the plugin would refuse is refused
// here, without a job.
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/common/exit_codes.h"
#include "tools/config/print.h"
#include "transport/system/config.h"

namespace weft::tools {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  weft_config\n"
    "  WEFT_PATHS=64 weft_config --json\n"
    "\n"
    "Exit codes: 0 good, 2 the command line or a setting is refused.";

enum class Layout { kText, kJson, kMarkdown };

std::string or_none(const std::string& path) { return path.empty() ? "(none)" : path; }

int show(Layout layout) {
  if (layout == Layout::kMarkdown) {
    // Of nothing set: the same on every machine.
    const Result<Config> defaults = read_config({});
    if (!defaults.ok()) {
      fmt::print(stderr, "weft_config: {}\n", defaults.status().words());
      return kUsage;
    }
    fmt::print("{}", settings_as_markdown(setting_rows(*defaults)));
    return kGood;
  }
  const ConfigSources sources = usual_sources();
  const Result<Config> config = read_config(sources);
  if (!config.ok()) {
    if (layout == Layout::kJson) fmt::print("{}", refusal_as_json(config.status().words()));
    fmt::print(stderr, "weft_config: refused: {}\n", config.status().words());
    return kUsage;
  }
  if (layout == Layout::kJson) {
    fmt::print("{}", settings_as_json(setting_rows(*config), config->warnings()));
    return kGood;
  }
  fmt::print("{}\nThe first that names a setting counts: the environment, {}, {}.\n",
             settings_as_text(setting_rows(*config)), or_none(sources.user_file),
             or_none(sources.system_file));
  std::fflush(stdout);
  for (const std::string& warning : config->warnings()) {
    fmt::print(stderr, "weft_config: warning: {}\n", warning);
  }
  return kGood;
}

int config_main(int argc, char** argv) {
  CLI::App app{
      "Shows every setting of Weft: its value, its default, where the value is from, what "
      "is allowed, what it means."};
  app.footer(kExamples);
  bool as_json = false;
  bool as_markdown = false;
  CLI::Option* json = app.add_flag("--json", as_json, "as JSON, warnings included");
  app.add_flag("--markdown", as_markdown, "the defaults, as the table in the README")
      ->excludes(json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kGood : kUsage;
  }
  return show(as_json ? Layout::kJson : as_markdown ? Layout::kMarkdown : Layout::kText);
}

}  // namespace
}  // namespace weft::tools

int main(int argc, char** argv) { return weft::tools::config_main(argc, argv); }
