// SPDX-License-Identifier: Apache-2.0
// A folder for the files of a test of the configuration; environment and paths are arguments there.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "transport/system/config.h"

namespace weft {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "weft-config-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& content) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static Result<Config> from_environment(std::vector<std::string> environment) {
    return read_config({std::move(environment), "", "", {}});
  }
  // What a file with this content, as the user's, gives.
  Result<Config> from_file(const std::string& content) {
    ConfigSources sources;
    sources.user_file = write("user", content);
    return read_config(sources);
  }
  std::string user_file() const { return folder_ + "/user"; }

  std::string folder_;
};

}  // namespace weft
