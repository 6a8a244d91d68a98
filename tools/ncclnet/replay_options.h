// SPDX-License-Identifier: Apache-2.0
// The part of the command line that is about recorded runs: replay and check.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/ncclnet/options.h"

namespace weft::ncclnet {

CLI::App* add_replay(CLI::App& app, Options& options);
CLI::App* add_check(CLI::App& app, Options& options);

}  // namespace weft::ncclnet
