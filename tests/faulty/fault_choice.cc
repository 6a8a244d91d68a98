// SPDX-License-Identifier: Apache-2.0
// The one thing in which the plugins of this folder differ: WEFT_FAULT comes from meson.build.
#include "tests/faulty/fault.h"

namespace weft::faulty {

const Fault kFault = Fault::WEFT_FAULT;

}  // namespace weft::faulty
