// SPDX-License-Identifier: Apache-2.0
// What the settings allow is there: each law and selector that a user may name is made by that
// name.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multipath/congestion/law.h"
#include "multipath/path/selector.h"
#include "transport/system/config.h"

namespace weft {
namespace {

std::vector<std::string> choices(Setting setting) {
  std::vector<std::string> names(1);
  for (const char* c = all_settings()[static_cast<size_t>(setting)].choices; *c; ++c) {
    if (*c == '|') {
      names.emplace_back();
    } else {
      names.back() += *c;
    }
  }
  return names;
}

TEST(Names, EveryLawThatTheSettingsAllowIsThere) {
  const Pipe pipe({});
  EXPECT_GE(choices(Setting::kCongestion).size(), 7u);
  for (const std::string& name : choices(Setting::kCongestion)) {
    const auto law = make_law(name, {}, pipe);
    ASSERT_NE(law, nullptr) << name;
    EXPECT_EQ(law->name(), name);
  }
}

TEST(Names, EverySelectorThatTheSettingsAllowIsThere) {
  EXPECT_GE(choices(Setting::kSelector).size(), 8u);
  for (const std::string& name : choices(Setting::kSelector)) {
    const auto selector = make_selector(name, {});
    ASSERT_NE(selector, nullptr) << name;
    EXPECT_EQ(selector->name(), name);
  }
}

}  // namespace
}  // namespace weft
