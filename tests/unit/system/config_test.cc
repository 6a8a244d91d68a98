// SPDX-License-Identifier: Apache-2.0
//
// Configuration, the values: defaults, ranges, words of refusal, what NCCL was told, the rows that
// people are shown.
#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/system/config_fixture.h"
#include "transport/system/config_rows.h"

namespace weft {
namespace {

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
                                            "WEFT_CC=reno",
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
  EXPECT_EQ(read_config(sources)->origin(Setting::kIfname), Origin::kNccl);
  EXPECT_EQ(read_config(sources)->where(Setting::kIfname), "NCCL_SOCKET_IFNAME in the environment");
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

TEST_F(ConfigTest, TheTableIsCompleteAndItsDefaultsAreAllowed) {
  std::set<std::string> names;
  std::vector<std::string> environment;
  for (const SettingInfo& info : all_settings()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name << " stands in the table twice";
    EXPECT_STRNE(info.help, "") << info.name;
    EXPECT_NE(info.allowed(), "") << info.name;
    EXPECT_TRUE(contains(info.allowed(), info.range())) << info.name;
    EXPECT_TRUE(*info.nccl == '\0' || contains(info.help, info.nccl)) << info.name;
    EXPECT_FALSE(contains(info.help, "|")) << info.name << ": no table in the README holds it";
    environment.push_back(std::string(info.name) + "=" + info.fallback);
  }
  const Result<Config> config = from_environment(environment);
  EXPECT_TRUE(config.ok()) << config.status().words();
  EXPECT_EQ(names.size(), kSettingCount);
}

TEST_F(ConfigTest, ControlCharactersAreRefusedAndNotRepeated) {
  for (const std::string bad : {"WEFT_STATS=/x\ny", "WEFT_IFNAME=\x1b[2J",
                                "WEFT_LOG=in\x7f"
                                "fo"}) {
    const Result<Config> config = from_environment({bad});
    ASSERT_FALSE(config.ok()) << bad;
    const std::string words = config.status().words();
    EXPECT_TRUE(contains(words, "holds control characters")) << words;
    EXPECT_TRUE(std::none_of(words.begin(), words.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 127;
    })) << words;
  }
  EXPECT_TRUE(from_environment({"WEFT_STATS=/a folder/\xc3\xa9"}).ok());
}

TEST_F(ConfigTest, ATextThatIsTooLongIsRefusedInFewWords) {
  EXPECT_TRUE(from_environment({"WEFT_STATS=" + std::string(kMaxValueBytes, 'x')}).ok());
  const Result<Config> config =
      from_environment({"WEFT_STATS=" + std::string(kMaxValueBytes + 1, 'x')});
  ASSERT_FALSE(config.ok());
  EXPECT_TRUE(contains(config.status().words(), "is too long")) << config.status().words();
  EXPECT_LT(config.status().words().size(), 400u);
}

TEST_F(ConfigTest, AMistypedChoiceIsToldTheOneThatIsNear) {
  const std::string words = from_environment({"WEFT_FABRIC=UDP"}).status().words();
  EXPECT_TRUE(contains(words, "did you mean udp?")) << words;
  const std::string far = from_environment({"WEFT_FABRIC=infiniband"}).status().words();
  EXPECT_FALSE(contains(far, "did you mean")) << far;
}

TEST_F(ConfigTest, RowsHaveValueDefaultRangeOriginAndHelpOfEverySetting) {
  ConfigSources sources;
  sources.user_file = write("user", "WEFT_SEGMENT=1408\n");
  sources.environment = {"WEFT_PATHS=8", "WEFT_LOG=warn", "NCCL_SOCKET_FAMILY=AF_INET6"};
  const Result<Config> config = read_config(sources);
  ASSERT_TRUE(config.ok()) << config.status().words();
  std::map<std::string, SettingRow> rows;
  for (const SettingRow& row : setting_rows(*config)) rows[row.name] = row;
  EXPECT_EQ(rows.size(), kSettingCount);
  EXPECT_EQ(rows["WEFT_PATHS"].value, "8");
  EXPECT_EQ(rows["WEFT_PATHS"].fallback, "32");
  EXPECT_EQ(rows["WEFT_PATHS"].range, "1 to 256");
  EXPECT_EQ(rows["WEFT_PATHS"].origin, "the environment");
  EXPECT_TRUE(rows["WEFT_PATHS"].set);
  EXPECT_EQ(rows["WEFT_SEGMENT"].origin, sources.user_file + ":1");
  EXPECT_EQ(rows["WEFT_SEGMENT"].range, "0 to 65280, a multiple of 128");
  EXPECT_EQ(rows["WEFT_FAMILY"].value, "ipv6");
  EXPECT_EQ(rows["WEFT_FAMILY"].origin, "NCCL_SOCKET_FAMILY in the environment");
  EXPECT_TRUE(rows["WEFT_LOG"].set) << "set, if only to its default";
  EXPECT_EQ(rows["WEFT_CC"].value, "nscc");
  EXPECT_EQ(rows["WEFT_CC"].origin, "the default");
  EXPECT_EQ(rows["WEFT_CC"].range, "nscc, mnscc, swift, timely, dctcp, cubic, fixed");
  EXPECT_FALSE(rows["WEFT_CC"].set);
}

}  // namespace
}  // namespace weft
