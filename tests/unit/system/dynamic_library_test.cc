// SPDX-License-Identifier: Apache-2.0
//
// Libraries loaded at run time: the first that loads is taken, and why none did is kept.
#include "transport/system/dynamic_library.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(DynamicLibrary, OpensTheFirstThatLoadsAndResolves) {
  const char* const names[] = {"libweft-absent.so.7", "libm.so.6"};
  Result<DynamicLibrary> library = DynamicLibrary::open(names);
  ASSERT_TRUE(library.ok()) << library.status().words();
  EXPECT_EQ(library->name(), "libm.so.6");
  double (*square_root)(double) = nullptr;
  ASSERT_TRUE(library->resolve("sqrt", square_root).ok());
  EXPECT_EQ(square_root(49.0), 7.0);
}

TEST(DynamicLibrary, KeepsTheReasonOfEveryFailure) {
  const char* const names[] = {"libweft-absent.so.7", "/dev/null"};
  const Result<DynamicLibrary> library = DynamicLibrary::open(names);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), Code::kUnavailable);
  EXPECT_NE(library.status().words().find("libweft-absent.so.7"), std::string::npos)
      << library.status().words();
  EXPECT_NE(library.status().words().find("/dev/null"), std::string::npos)
      << library.status().words();
  EXPECT_FALSE(DynamicLibrary::open(std::span<const char* const>{}).ok());
}

TEST(DynamicLibrary, AMissingSymbolIsNamed) {
  Result<DynamicLibrary> library = DynamicLibrary::open("libm.so.6");
  ASSERT_TRUE(library.ok());
  const Result<void*> symbol = library->symbol("weft_no_such_symbol");
  ASSERT_FALSE(symbol.ok());
  EXPECT_NE(symbol.status().words().find("libm.so.6 lacks weft_no_such_symbol"), std::string::npos)
      << symbol.status().words();
  EXPECT_FALSE(DynamicLibrary().symbol("sqrt").ok());
}

TEST(DynamicLibrary, MovesLeaveOneOwner) {
  Result<DynamicLibrary> opened = DynamicLibrary::open("libm.so.6");
  ASSERT_TRUE(opened.ok());
  DynamicLibrary first = std::move(*opened);
  EXPECT_FALSE(opened->loaded());
  DynamicLibrary second;
  second = std::move(first);
  EXPECT_TRUE(second.loaded());
  EXPECT_FALSE(first.loaded());  // NOLINT: that is the point
  EXPECT_TRUE(second.symbol("sqrt").ok());
}

}  // namespace
}  // namespace weft
