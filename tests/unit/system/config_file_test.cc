// SPDX-License-Identifier: Apache-2.0
//
// Configuration, the files: as editors, people and accidents make them. They are real ones in a
// temporary folder.
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/system/config_fixture.h"

namespace weft {
namespace {

TEST_F(ConfigTest, EditorsMayLeaveAByteOrderMarkCarriageReturnsAndNoLastNewline) {
  const Result<Config> config =
      from_file("\xef\xbb\xbfWEFT_PATHS=2\r\n\r\n# mine\r\n\tWEFT_LOG = info \r\nWEFT_CC=fixed");
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->paths(), 2u);
  EXPECT_EQ(config->log_level(), Level::kInfo);
  EXPECT_EQ(config->congestion(), "fixed");
  EXPECT_EQ(config->where(Setting::kCongestion), user_file() + ":5");
  EXPECT_TRUE(config->warnings().empty());
}

TEST_F(ConfigTest, OfWhatAFileSaysTwiceTheLastCountsAndIsWarnedOf) {
  const Result<Config> config = from_file("WEFT_PATHS=2\nWEFT_LOG=info\nWEFT_PATHS=3\n");
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->paths(), 3u);
  ASSERT_EQ(config->warnings().size(), 1u);
  EXPECT_TRUE(contains(config->warnings()[0], user_file() + ":3")) << config->warnings()[0];
  EXPECT_TRUE(contains(config->warnings()[0], user_file() + ":1")) << config->warnings()[0];
}

TEST_F(ConfigTest, ALineThatSaysNothingIsRefusedWithItsNumber) {
  ConfigSources sources;
  sources.user_file = write("user", "WEFT_PATHS=7\nWEFT_LOG info\n");
  const Result<Config> config = read_config(sources);
  ASSERT_FALSE(config.ok());
  EXPECT_TRUE(contains(config.status().words(), "user:2: 'WEFT_LOG info'"))
      << config.status().words();
}

TEST_F(ConfigTest, ALineMeantForAShellIsRefusedWithItsNumber) {
  const Result<Config> config = from_file("\nexport WEFT_PATHS=8\n=8\n");
  ASSERT_FALSE(config.ok());
  for (const char* part : {"user:2: 'export WEFT_PATHS=8'", "user:3: '=8'"}) {
    EXPECT_TRUE(contains(config.status().words(), part)) << config.status().words();
  }
}

TEST_F(ConfigTest, AWrongValueIsRefusedWithFileAndLine) {
  const Result<Config> config = from_file("# a\n\nWEFT_PATHS=300\nWEFT_PATHS=400\n");
  ASSERT_FALSE(config.ok());
  EXPECT_TRUE(contains(config.status().words(), "WEFT_PATHS=400 (from " + user_file() + ":4)"))
      << config.status().words();
  EXPECT_TRUE(contains(config.status().words(), "a whole number from 1 to 256"))
      << config.status().words();
}

TEST_F(ConfigTest, FilesThatCannotBeReadAreWarnedOfAndAbsentOnesAreNot) {
  ConfigSources sources;
  sources.user_file = folder_;
  sources.system_file = folder_ + "/absent";
  Result<Config> config = read_config(sources);
  ASSERT_TRUE(config.ok()) << config.status().words();
  ASSERT_EQ(config->warnings().size(), 1u);
  EXPECT_TRUE(contains(config->warnings()[0], "not a regular file")) << config->warnings()[0];

  sources.user_file = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(sources.user_file.c_str(), 0600), 0);
  config = read_config(sources);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->warnings().size(), 1u);

  sources.user_file = write("huge", std::string(70000, '#'));
  config = read_config(sources);
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config->warnings().size(), 1u);
  EXPECT_TRUE(contains(config->warnings()[0], "larger than")) << config->warnings()[0];
}

TEST_F(ConfigTest, AFileOfTheMostBytesThatAreReadIsRead) {
  const std::string last = "\nWEFT_PATHS=5";
  const Result<Config> config = from_file(std::string(64 * 1024 - last.size(), '#') + last);
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->paths(), 5u);
  EXPECT_TRUE(config->warnings().empty());
}

TEST_F(ConfigTest, AFileThatMayNotBeReadIsWarnedOfWithTheReason) {
  ConfigSources sources;
  sources.user_file = write("secret", "WEFT_PATHS=7\n");
  ASSERT_EQ(::chmod(sources.user_file.c_str(), 0), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0) ::setfsuid(kNobody);  // root may read everything
  const Result<Config> config = read_config(sources);
  if (::geteuid() == 0) ::setfsuid(0);
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->paths(), 32u);
  ASSERT_EQ(config->warnings().size(), 1u);
  EXPECT_TRUE(contains(config->warnings()[0], sources.user_file + " is ignored: Permission denied"))
      << config->warnings()[0];
}

TEST_F(ConfigTest, LinksInARingAndDevicesAreWarnedOf) {
  ConfigSources sources;
  sources.user_file = folder_ + "/ring";
  ASSERT_EQ(::symlink(sources.user_file.c_str(), sources.user_file.c_str()), 0);
  sources.system_file = "/dev/zero";
  const Result<Config> config = read_config(sources);
  ASSERT_TRUE(config.ok()) << config.status().words();
  ASSERT_EQ(config->warnings().size(), 2u);
  EXPECT_TRUE(contains(config->warnings()[0], "/dev/zero")) << config->warnings()[0];
  EXPECT_TRUE(contains(config->warnings()[1], sources.user_file)) << config->warnings()[1];
}

TEST_F(ConfigTest, NullBytesAreRefusedWhereTheyStand) {
  Result<Config> config = from_file(std::string("WEFT_PATHS=7\nWEFT_STATS=/a\0b\n", 29));
  ASSERT_FALSE(config.ok());
  EXPECT_TRUE(contains(config.status().words(), "WEFT_STATS=/a?b (from " + user_file() + ":2)"))
      << config.status().words();
  // As some editors write a text: two bytes a character.
  config =
      from_file(std::string("\xff\xfeW\0E\0F\0T\0_\0=\0"
                            "1\0",
                            16));
  ASSERT_FALSE(config.ok());
  EXPECT_TRUE(contains(config.status().words(), "not plain text")) << config.status().words();
}

TEST_F(ConfigTest, BinaryFilesAreHarmless) {
  ConfigSources sources;
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 7 + i / 251);
  sources.user_file = write("binary", bytes);
  EXPECT_FALSE(read_config(sources).ok());
}

TEST_F(ConfigTest, HoweverMuchIsWrongWordsAreBounded) {
  std::string bad;
  for (int i = 0; i < 10000; ++i) bad += "nonsense\n";
  Result<Config> config = from_file(bad.substr(0, 64 * 1024));
  ASSERT_FALSE(config.ok());
  EXPECT_LT(config.status().words().size(), 4096u);
  EXPECT_TRUE(contains(config.status().words(), " more")) << config.status().words();

  std::string unknown;
  for (int i = 0; i < 2000; ++i) unknown += "WEFT_NEW_" + std::to_string(i) + "=1\n";
  config = from_file(unknown);
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_LE(config->warnings().size(), 64u);
  EXPECT_TRUE(contains(config->warnings().back(), "warnings more")) << config->warnings().back();
}

}  // namespace
}  // namespace weft
