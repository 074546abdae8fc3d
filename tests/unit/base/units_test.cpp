#include "base/units.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace verbatim {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename Parse>
void expect_refusal(Parse parse, const std::string& text) {
  try {
    (void)parse("the knob", text);
    ADD_FAILURE() << "'" << text << "' was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("the knob"), HasSubstr(fmt::format("'{}'", text))));
  }
}

TEST(Duration, IsReadInEveryUnit) {
  EXPECT_EQ(parse_duration("knob", "10ns"), 10ns);
  EXPECT_EQ(parse_duration("knob", "640us"), 640us);
  EXPECT_EQ(parse_duration("knob", "1.5ms"), 1500us);
  EXPECT_EQ(parse_duration("knob", "3s"), 3s);
  EXPECT_EQ(parse_duration("knob", "2min"), 2min);
  EXPECT_EQ(parse_duration("knob", " 3 s\r\n"), 3s);
  EXPECT_EQ(parse_duration("knob", "0s"), 0s);
}

TEST(Duration, IsRefusedWithoutAUnitOrWithAStrangeOne) {
  for (const auto* text :
       {"", "10", "s", "10 m", "-1s", "0x10s", "1h", "1ss", "nan s", "inf s", "1e3s", "1s 2s", "300000000min"}) {
    expect_refusal(parse_duration, text);
  }
}

TEST(Duration, IsWrittenTheShortestExactWay) {
  EXPECT_EQ(format_duration(0ns), "0ns");
  EXPECT_EQ(format_duration(640us), "640us");
  EXPECT_EQ(format_duration(1500us), "1500us");
  EXPECT_EQ(format_duration(120s), "2min");
  EXPECT_EQ(format_duration(1001ns), "1001ns");
}

TEST(Size, IsReadInEveryUnit) {
  EXPECT_EQ(parse_size("knob", "0"), 0u);
  EXPECT_EQ(parse_size("knob", "512"), 512u);
  EXPECT_EQ(parse_size("knob", "512B"), 512u);
  EXPECT_EQ(parse_size("knob", "8KiB"), 8192u);
  EXPECT_EQ(parse_size("knob", "64k"), 65536u);
  EXPECT_EQ(parse_size("knob", "64K"), 65536u);
  EXPECT_EQ(parse_size("knob", "2MiB"), 2u << 20);
  EXPECT_EQ(parse_size("knob", "1GiB"), 1u << 30);
  EXPECT_EQ(parse_size("knob", "1.5KiB"), 1536u);
  EXPECT_EQ(parse_size("knob", " 4 KiB "), 4096u);
}

TEST(Size, IsRefusedWhenItIsNotWholeOrHasAStrangeUnit) {
  for (const auto* text : {"", "k", "-1", "0x10", "1.5", "1TiB", "1kib", "1KB", "1 2", "nan", "99999999GiB"}) {
    expect_refusal(parse_size, text);
  }
}

TEST(Size, IsWrittenTheShortestExactWay) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(8192), "8KiB");
  EXPECT_EQ(format_size(1025), "1025");
  EXPECT_EQ(format_size(1u << 30), "1GiB");
}

TEST(Units, ReadBackWhatTheyWrote) {
  for (const Duration duration : {1ns, 999999ns, Duration(640us), Duration(7s), Duration(61s)}) {
    EXPECT_EQ(parse_duration("knob", format_duration(duration)), duration);
  }
  for (const std::uint64_t bytes : {1ull, 1023ull, 1024ull, 1025ull, 3ull << 20, (1ull << 40) + 1}) {
    EXPECT_EQ(parse_size("knob", format_size(bytes)), bytes);
  }
}

}  // namespace
}  // namespace verbatim
