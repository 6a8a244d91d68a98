// SPDX-License-Identifier: Apache-2.0
//
// Configuration: precedence, ranges, words of refusal. Environment and files are arguments here;
// the files are real ones in a temporary folder.
#include "transport/system/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

namespace weft {
namespace {

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/weft-config-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& content) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static Result<Config> from_environment(std::vector<std::string> environment) {
    return read_config({std::move(environment), "", ""});
  }

  std::string folder_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ConfigTest, NothingSetGivesTheDefaults) {
  const Result<Config> config = from_environment({});
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->fabric(), FabricChoice::kAuto);
  EXPECT_EQ(config->ifname(), "");
  EXPECT_EQ(config->paths(), 32u);
  EXPECT_EQ(config->selector(), "reps");
  EXPECT_EQ(config->congestion(), "nscc");
  EXPECT_EQ(config->progress(), ProgressMode::kAuto);
  EXPECT_EQ(config->peer_timeout(), seconds(10));
  EXPECT_EQ(config->link_gbps(), 0.0);
  EXPECT_EQ(config->log_level(), Level::kWarn);
  EXPECT_EQ(config->stats_path(), "");
  EXPECT_EQ(config->window_bytes(), 2048u * 1024u);
  EXPECT_EQ(config->segment_bytes(), 0u);
  EXPECT_EQ(config->family(), FamilyChoice::kAuto);
  EXPECT_EQ(config->udp_gso(), Switch::kAuto);
  EXPECT_EQ(config->udp_gro(), Switch::kAuto);
  EXPECT_TRUE(config->warnings().empty());
  EXPECT_EQ(config->origin(Setting::kPaths), Origin::kDefault);
}

TEST_F(ConfigTest, EveryValueIsRead) {
  const Result<Config> config = from_environment(
      {"WEFT_FABRIC=udp", "WEFT_IFNAME==lo", "WEFT_PATHS=256", "WEFT_SELECTOR=oblivious",
       "WEFT_CC=fixed", "WEFT_PROGRESS=thread", "WEFT_PEER_TIMEOUT_MS=100", "WEFT_LINK_GBPS=0.2",
       "WEFT_LOG=trace", "WEFT_STATS=/tmp/x", "WEFT_WINDOW_KB=64", "WEFT_SEGMENT=1408",
       "WEFT_UDP_GSO=on", "WEFT_UDP_GRO=off", "WEFT_FAMILY=ipv6"});
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->fabric(), FabricChoice::kUdp);
  EXPECT_EQ(config->ifname(), "=lo");
  EXPECT_EQ(config->paths(), 256u);
  EXPECT_EQ(config->progress(), ProgressMode::kThread);
  EXPECT_EQ(config->peer_timeout(), milliseconds(100));
  EXPECT_EQ(config->link_gbps(), 0.2);
  EXPECT_EQ(config->log_level(), Level::kTrace);
  EXPECT_EQ(config->stats_path(), "/tmp/x");
  EXPECT_EQ(config->window_bytes(), 65536u);
  EXPECT_EQ(config->segment_bytes(), 1408u);
  EXPECT_EQ(config->family(), FamilyChoice::kIpv6);
  EXPECT_EQ(config->udp_gso(), Switch::kOn);
  EXPECT_EQ(config->udp_gro(), Switch::kOff);
}

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

TEST_F(ConfigTest, RefusesWhatIsNotAllowed) {
  const std::vector<const char*> refused = {"WEFT_PATHS=0",
                                            "WEFT_PATHS=257",
                                            "WEFT_PATHS=-1",
                                            "WEFT_PATHS=8x",
                                            "WEFT_PATHS=0x10",
                                            "WEFT_PATHS=+8",
                                            "WEFT_PATHS=8.0",
                                            "WEFT_PATHS=99999999999999999999",
                                            "WEFT_FABRIC=UDP",
                                            "WEFT_FABRIC=auto|udp",
                                            "WEFT_FABRIC=ud",
                                            "WEFT_CC=swift",
                                            "WEFT_PROGRESS=both",
                                            "WEFT_PEER_TIMEOUT_MS=99",
                                            "WEFT_PEER_TIMEOUT_MS=600001",
                                            "WEFT_LINK_GBPS=nan",
                                            "WEFT_LINK_GBPS=-1",
                                            "WEFT_LINK_GBPS=inf",
                                            "WEFT_LINK_GBPS=1e6",
                                            "WEFT_LINK_GBPS=10G",
                                            "WEFT_LOG=debug",
                                            "WEFT_WINDOW_KB=63",
                                            "WEFT_WINDOW_KB=65537",
                                            "WEFT_SEGMENT=1400",
                                            "WEFT_SEGMENT=-128",
                                            "WEFT_SEGMENT=65408"};
  for (const char* bad : refused) {
    const Result<Config> config = from_environment({bad});
    ASSERT_FALSE(config.ok()) << bad;
    EXPECT_EQ(config.status().code(), Code::kInvalidArgument) << bad;
    EXPECT_TRUE(contains(config.status().words(), bad)) << config.status().words();
  }
}

TEST_F(ConfigTest, ARefusalSaysValueSourceAndWhatIsAllowed) {
  ConfigSources sources;
  sources.user_file = write("user", "\nWEFT_SEGMENT=1400\nWEFT_LOG=loud\n");
  const std::string words = read_config(sources).status().words();
  EXPECT_TRUE(contains(words, "WEFT_SEGMENT=1400")) << words;
  EXPECT_TRUE(contains(words, sources.user_file + ":2")) << words;
  EXPECT_TRUE(contains(words, "from 0 to 65280, a multiple of 128")) << words;
  EXPECT_TRUE(contains(words, "WEFT_LOG=loud")) << "all faults at once: " << words;
  EXPECT_TRUE(contains(words, "error, warn, info, trace")) << words;
}

TEST_F(ConfigTest, ABadValueThatIsOverriddenDoesNoHarm) {
  ConfigSources sources;
  sources.system_file = write("system", "WEFT_PATHS=lots\n");
  EXPECT_FALSE(read_config(sources).ok());
  sources.environment = {"WEFT_PATHS=8"};
  const Result<Config> config = read_config(sources);
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->paths(), 8u);
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

TEST_F(ConfigTest, AnEmptyValueCountsAsNotSet) {
  ConfigSources sources;
  sources.user_file = write("user", "WEFT_PATHS=7\n");
  sources.environment = {"WEFT_PATHS="};
  const Result<Config> config = read_config(sources);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->paths(), 7u);
}

TEST_F(ConfigTest, NcclsInterfaceRuleIsTheWeakestSource) {
  ConfigSources sources;
  sources.environment = {"NCCL_SOCKET_IFNAME=^docker"};
  EXPECT_EQ(read_config(sources)->ifname(), "^docker");
  sources.system_file = write("system", "WEFT_IFNAME=eth\n");
  EXPECT_EQ(read_config(sources)->ifname(), "eth");
}

TEST_F(ConfigTest, NcclsAddressFamilyIsTheWeakestSource) {
  EXPECT_EQ(from_environment({"NCCL_SOCKET_FAMILY=AF_INET6"})->family(), FamilyChoice::kIpv6);
  EXPECT_EQ(from_environment({"NCCL_SOCKET_FAMILY=AF_INET"})->family(), FamilyChoice::kIpv4);
  EXPECT_EQ(from_environment({"NCCL_SOCKET_FAMILY=AF_UNIX"})->family(), FamilyChoice::kAuto);
  EXPECT_EQ(from_environment({"NCCL_SOCKET_FAMILY=AF_INET6", "WEFT_FAMILY=auto"})->family(),
            FamilyChoice::kAuto);
}

TEST_F(ConfigTest, AnAddressFamilyThatNcclDoesNotKnowIsWarnedOfWhereItWouldHaveCounted) {
  const Result<Config> config = from_environment({"NCCL_SOCKET_FAMILY=nonsense"});
  ASSERT_TRUE(config.ok()) << config.status().words();
  ASSERT_EQ(config->warnings().size(), 1u);
  for (const char* part : {"NCCL_SOCKET_FAMILY=nonsense", "AF_INET or AF_INET6"}) {
    EXPECT_TRUE(contains(config->warnings()[0], part)) << config->warnings()[0];
  }
  for (const auto& quiet :
       std::vector<std::vector<std::string>>{{"NCCL_SOCKET_FAMILY=AF_INET"},
                                             {"NCCL_SOCKET_FAMILY="},
                                             {"NCCL_SOCKET_FAMILY=nonsense", "WEFT_FAMILY=ipv4"}}) {
    EXPECT_EQ(from_environment(quiet)->warnings().size(), 0u) << quiet.front();
  }
}

TEST_F(ConfigTest, ALineThatSaysNothingIsRefusedWithItsNumber) {
  ConfigSources sources;
  sources.user_file = write("user", "WEFT_PATHS=7\nWEFT_LOG info\n");
  const Result<Config> config = read_config(sources);
  ASSERT_FALSE(config.ok());
  EXPECT_TRUE(contains(config.status().words(), "user:2: 'WEFT_LOG info'"))
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

TEST_F(ConfigTest, BinaryFilesAreHarmless) {
  ConfigSources sources;
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 7 + i / 251);
  sources.user_file = write("binary", bytes);
  EXPECT_FALSE(read_config(sources).ok());
}

TEST_F(ConfigTest, TheTableIsCompleteAndItsDefaultsAreAllowed) {
  std::set<std::string> names;
  std::vector<std::string> environment;
  for (const SettingInfo& info : all_settings()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name << " stands in the table twice";
    EXPECT_STRNE(info.help, "") << info.name;
    EXPECT_NE(info.allowed(), "") << info.name;
    environment.push_back(std::string(info.name) + "=" + info.fallback);
  }
  const Result<Config> config = from_environment(environment);
  EXPECT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(names.size(), kSettingCount);
}

TEST(LoadConfigTest, ReadsTheProcessEnvironment) {
  ASSERT_EQ(setenv("HOME", "/nonexistent", 1), 0);
  ASSERT_EQ(setenv("WEFT_PATHS", "77", 1), 0);
  const Result<Config> config = load_config();
  unsetenv("WEFT_PATHS");
  ASSERT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(config->paths(), 77u);
}

}  // namespace
}  // namespace weft
