#include "base/error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace verbatim {
namespace {

TEST(Error, CarriesACodeAndASentence) {
  const Error error(ErrorCode::busy, "held by process 7");
  EXPECT_EQ(error.code(), ErrorCode::busy);
  EXPECT_STREQ(error.what(), "held by process 7");
  const std::exception& base = error;
  EXPECT_STREQ(base.what(), "held by process 7");
}

TEST(Error, HasWordsOfItsOwnForEveryCode) {
  std::set<std::string> words;
  for (int code = 0; code <= static_cast<int>(ErrorCode::device_failure); ++code) {
    EXPECT_TRUE(words.insert(to_string(static_cast<ErrorCode>(code))).second);
  }
  EXPECT_EQ(words.count("unknown error code"), 0u);
}

}  // namespace
}  // namespace verbatim
