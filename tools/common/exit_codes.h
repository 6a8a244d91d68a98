// SPDX-License-Identifier: Apache-2.0
// The exit codes of every weft_* tool; scripts rely on them.
#pragma once

namespace weft::tools {

enum ExitCode : int {
  kGood = 0,
  kDataWrong = 1,      // bytes, sizes or their bounds are not what was sent
  kUsage = 2,          // the command line, or a file it names, makes no sense
  kTimedOut = 3,       // not finished within --timeout
  kFailed = 4,         // the plugin, or a peer, failed
  kCannotRunHere = 77  // this machine lacks what the run needs (a right, a device)
};

}  // namespace weft::tools
