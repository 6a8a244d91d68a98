// SPDX-License-Identifier: Apache-2.0
//
// From raw NAME=VALUE pairs to a Config: the part of the configuration that reads nothing.
//
// Sources are offered from the weakest to the strongest; each replaces what came before it, and
// only what is left at the end is parsed. Of what one source says twice the last counts in a file,
// as if read line by line, and the first in an environment, as for getenv(3); both with a warning.
// Words are bounded, however much is wrong, and hold no control characters.
// For the implementation of read_config, and its tests.
// Threading: one thread. What may fail: finish(), as config.h says.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "transport/system/config.h"

namespace weft {

// What a source says, fit to be shown: not too long, and without control characters.
std::string printable(std::string_view text);

class ConfigBuilder {
 public:
  // `where` names the place for a person. Unknown WEFT_* names become warnings; any other unknown
  // name does too, unless it comes from the environment, which is not ours.
  void offer(std::string_view name, std::string_view value, Origin origin, std::string where);
  // The lines of a file called `path`.
  void offer_file(std::string_view content, std::string_view path, Origin origin);
  void warn(std::string words);
  // Whether any source has given it a value so far.
  bool is_set(Setting setting) const { return config_.origin(setting) != Origin::kDefault; }

  Result<Config> finish();

 private:
  void refuse(std::string words);
  // Empty words: `value` holds what `text` says. Else what is wrong.
  static std::string parse(const SettingInfo& info, Config::Value& value);

  Config config_;
  std::vector<std::string> errors_;
  std::size_t more_errors_ = 0;
  std::size_t more_warnings_ = 0;
};

}  // namespace weft
