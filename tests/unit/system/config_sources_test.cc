// SPDX-License-Identifier: Apache-2.0
//
// Configuration, the sources: which of them wins, where the usual ones are, names that there are
// not, and what the log hears of it all.
#include "tests/unit/system/config_fixture.h"
#include "transport/system/log.h"

namespace weft {
namespace {

TEST_F(ConfigTest, EnvironmentBeatsUserFileBeatsSystemFile) {
  ConfigSources sources;
  sources.system_file = write("system", "WEFT_PATHS=1\nWEFT_WINDOW_KB=100\nWEFT_LOG=info\n");
  sources.user_file = write("user", "# mine\n\n  WEFT_PATHS = 2 \r\nWEFT_WINDOW_KB=200");
  sources.environment = {"WEFT_PATHS=3"};
  const Result<Config> config = read_config(sources);
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->paths(), 3u);
  EXPECT_EQ(config->origin(Setting::kPaths), Origin::kEnvironment);
  EXPECT_EQ(config->window_bytes(), 200u * 1024u);
  EXPECT_EQ(config->where(Setting::kWindow), sources.user_file + ":4");
  EXPECT_EQ(config->origin(Setting::kWindow), Origin::kUserFile);
  EXPECT_EQ(config->log_level(), Level::kInfo);
  EXPECT_EQ(config->origin(Setting::kLog), Origin::kSystemFile);
}

// Two values that the setting allows, neither of them the default.
std::pair<std::string, std::string> two_values(const SettingInfo& info) {
  switch (info.kind) {
    case Kind::kText: return {"one", "two"};
    case Kind::kDecimal: return {"1.5", "2.5"};
    case Kind::kWhole:
      return {std::to_string(128 * info.multiple), std::to_string(256 * info.multiple)};
    case Kind::kChoice: break;
  }
  const std::string choices = info.choices;
  return {choices.substr(choices.rfind('|') + 1), choices.substr(0, choices.find('|'))};
}

TEST_F(ConfigTest, EverySettingObeysTheOrderOfTheSources) {
  for (const SettingInfo& info : all_settings()) {
    const auto [strong, weak] = two_values(info);
    const std::string name = std::string(info.name) + "=";
    ConfigSources sources;
    sources.system_file = write("system", name + strong);
    Result<Config> config = read_config(sources);
    ASSERT_TRUE(config.ok()) << config.status().words();
    EXPECT_EQ(config->text(info.setting), strong) << "the system's file over the default";
    EXPECT_EQ(config->origin(info.setting), Origin::kSystemFile);

    sources.user_file = write("user", name + strong);
    sources.system_file = write("system", name + weak);
    config = read_config(sources);
    ASSERT_TRUE(config.ok()) << config.status().words();
    EXPECT_EQ(config->text(info.setting), strong) << "the user's file over the system's";
    EXPECT_EQ(config->origin(info.setting), Origin::kUserFile);

    sources.environment = {name + strong};
    sources.user_file = write("user", name + weak);
    config = read_config(sources);
    ASSERT_TRUE(config.ok()) << config.status().words();
    EXPECT_EQ(config->text(info.setting), strong) << "the environment over the user's file";
    EXPECT_EQ(config->origin(info.setting), Origin::kEnvironment);
  }
}

TEST_F(ConfigTest, UnknownNamesAreWarnedOf) {
  ConfigSources sources;
  sources.user_file = write("user", "NCCL_DEBUG=INFO\n");
  sources.environment = {"WEFT_PATH=8", "WEFT_TEST_SEED=1", "PATH=/bin", "NCCL_DEBUG=WARN", "odd"};
  const Result<Config> config = read_config(sources);
  ASSERT_TRUE(config.ok()) << config.status().words();
  ASSERT_EQ(config->warnings().size(), 2u);
  EXPECT_TRUE(contains(config->warnings()[0], "NCCL_DEBUG")) << config->warnings()[0];
  EXPECT_TRUE(contains(config->warnings()[0], sources.user_file + ":1")) << config->warnings()[0];
  EXPECT_TRUE(contains(config->warnings()[1], "WEFT_PATH ")) << config->warnings()[1];
  EXPECT_TRUE(contains(config->warnings()[1], "WEFT_PATHS")) << config->warnings()[1];
}

TEST_F(ConfigTest, AnUnknownNameIsToldTheOneThatIsNear) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"WEFT_PATH", "did you mean WEFT_PATHS?"},
      {"WEFT_SELETCOR", "did you mean WEFT_SELECTOR?"},
      {"weft_paths", "did you mean WEFT_PATHS?"},
      {"WEFT_TIMEOUT", "did you mean WEFT_PEER_TIMEOUT_MS?"},
      {"NCCL_SOCKET_IFNAME", "here its name is WEFT_IFNAME"},
      {"WEFT_QOS_CLASS", "there are: WEFT_FABRIC"}};
  for (const auto& [name, words] : cases) {
    const Result<Config> config = from_file("# for several versions\n" + name + "=8\n");
    ASSERT_TRUE(config.ok()) << config.status().words();
    ASSERT_EQ(config->warnings().size(), 1u) << name;
    EXPECT_TRUE(contains(config->warnings()[0], words)) << config->warnings()[0];
    EXPECT_TRUE(contains(config->warnings()[0], name + " (from " + user_file() + ":2)"))
        << config->warnings()[0];
  }
}

TEST_F(ConfigTest, OfWhatAnEnvironmentSaysTwiceTheFirstCountsAsForGetenv) {
  const Result<Config> config = from_environment({"WEFT_PATHS=2", "WEFT_PATHS=3"});
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->paths(), 2u);
  ASSERT_EQ(config->warnings().size(), 1u);
  EXPECT_TRUE(contains(config->warnings()[0], "WEFT_PATHS")) << config->warnings()[0];
}

ConfigSources usual(std::vector<std::string> environment, bool privileged = false) {
  std::vector<char*> entries;
  for (std::string& entry : environment) entries.push_back(entry.data());
  entries.push_back(nullptr);
  return usual_sources(entries.data(), privileged);
}

TEST(UsualSourcesTest, HomeSaysWhereTheUsersFileIsAndHasToBeAbsolute) {
  EXPECT_EQ(usual({"A=b", "HOME=/home/me"}).user_file, "/home/me/.weft.conf");
  EXPECT_EQ(usual({"HOME=/home/me"}).system_file, "/etc/weft.conf");
  EXPECT_EQ(usual({}).user_file, "");
  EXPECT_EQ(usual({"HOME="}).user_file, "");
  EXPECT_EQ(usual_sources(nullptr, false).user_file, "");
  EXPECT_TRUE(usual({}).remarks.empty());
  const ConfigSources relative = usual({"HOME=me"});
  EXPECT_EQ(relative.user_file, "");
  ASSERT_EQ(relative.remarks.size(), 1u);
  EXPECT_TRUE(contains(relative.remarks[0], "HOME=me")) << relative.remarks[0];
  EXPECT_EQ(read_config({{}, "", "", relative.remarks})->warnings(), relative.remarks);
}

TEST(UsualSourcesTest, AProcessWithMoreRightsThanItsCallerListensToTheSystemAlone) {
  const ConfigSources sources = usual({"HOME=/home/me", "WEFT_STATS=/etc/shadow"}, true);
  EXPECT_TRUE(sources.environment.empty());
  EXPECT_EQ(sources.user_file, "");
  EXPECT_EQ(sources.system_file, "/etc/weft.conf");
  ASSERT_EQ(sources.remarks.size(), 1u);
}

TEST(LoadConfigTest, ReadsTheProcessEnvironment) {
  ASSERT_EQ(setenv("HOME", "/nonexistent", 1), 0);
  ASSERT_EQ(setenv("WEFT_PATHS", "77", 1), 0);
  const Result<Config> config = load_config();
  unsetenv("WEFT_PATHS");
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->paths(), 77u);
}

std::vector<std::string>& lines() {
  static std::vector<std::string> all;
  return all;
}

TEST_F(ConfigTest, WhatIsSetIsLoggedWithItsOriginAtLevelInfo) {
  ConfigSources sources;
  sources.user_file = write("user", "WEFT_PATHS=7\nWEFT_NEW=1\n");
  for (const char* level : {"info", "warn"}) {
    sources.environment = {std::string("WEFT_LOG=") + level};
    const Result<Config> config = read_config(sources);
    ASSERT_TRUE(config.ok()) << config.status().words();
    lines().clear();
    set_log_sink([](Level at, const LogSite&, const char* text) {
      lines().push_back(std::string(name_of(at)) + ": " + text);
    });
    apply_log_settings(*config);
    set_log_sink(nullptr);
    set_log_level(Level::kWarn);
    if (std::string(level) == "warn") {
      ASSERT_EQ(lines().size(), 1u) << "the warning alone";
    } else {
      ASSERT_EQ(lines().size(), 3u);
      EXPECT_EQ(lines()[1], "info: WEFT_PATHS=7 (from " + sources.user_file + ":1)");
      EXPECT_EQ(lines()[2], "info: WEFT_LOG=info (from the environment)");
    }
    EXPECT_TRUE(contains(lines()[0], "warn: WEFT_NEW")) << lines()[0];
  }
}

}  // namespace
}  // namespace weft
