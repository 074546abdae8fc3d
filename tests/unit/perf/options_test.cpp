// The command line of verbatim-perf, and what is planned by it.
#include "verbatim-perf/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "verbatim-perf/plan.hpp"

namespace verbatim::perf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Options parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "verbatim-perf");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

// The sentence of whatever refuses.
std::string refusal(std::vector<const char*> arguments) {
  try {
    (void)parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return error.what();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(PerfOptions, MeasureEverythingOnThisHostByDefault) {
  const Options options = parse({});
  EXPECT_EQ(options.mode, Mode::local);
  EXPECT_EQ(options.tests.size(), all_tests().size());
  EXPECT_EQ(options.format, Format::table);
  const auto plan = make_plan(options);
  EXPECT_EQ(plan.front(), (Point{TestKind::lat, 8, 1, false}));
  EXPECT_GT(plan.size(), options.tests.size());
}

TEST(PerfOptions, TakeTestsSizesAndBounds) {
  const Options options = parse({"lat", "bw", "--sizes", "8,4KiB", "--window", "16", "--iterations", "100", "--check",
                                 "--json", "--cores", "1,0"});
  EXPECT_THAT(options.tests, ElementsAre(TestKind::lat, TestKind::bw));
  EXPECT_THAT(options.sizes, ElementsAre(8, 4096));
  EXPECT_THAT(options.cores, ElementsAre(1, 0));
  EXPECT_EQ(options.iterations, 100U);
  EXPECT_EQ(options.format, Format::json);
  EXPECT_THAT(make_plan(options), ElementsAre(Point{TestKind::lat, 8, 1, true}, Point{TestKind::lat, 4096, 1, true},
                                              Point{TestKind::bw, 8, 16, true}, Point{TestKind::bw, 4096, 16, true}));
}

TEST(PerfOptions, TakeTestsAfterSizesAndCores) {
  const Options options = parse({"--sizes", "8,64", "lat", "--cores", "0,1", "bw"});
  EXPECT_THAT(options.tests, ElementsAre(TestKind::lat, TestKind::bw));
  EXPECT_THAT(options.sizes, ElementsAre(8, 64));
}

TEST(PerfOptions, ListenWithAndWithoutAnAddress) {
  EXPECT_EQ(parse({"--listen"}).mode, Mode::listen);
  EXPECT_EQ(parse({"--listen"}).address, "");
  EXPECT_EQ(parse({"--listen", ":7000"}).address, ":7000");
  EXPECT_EQ(parse({"--connect", "host:7000", "lat"}).mode, Mode::connect);
  EXPECT_EQ(parse({"--connect", "host:7000", "lat"}).address, "host:7000");
}

TEST(PerfOptions, HandKnobsToTheLibrary) {
  const Options options = parse(
      {"lat", "--wait", "event", "--device", "rxe0:1", "--set", "rc.send_depth=64", "--set", "eager.max_bytes=4KiB"});
  EXPECT_THAT(options.config.overrides,
              ElementsAre("rc.send_depth=64", "eager.max_bytes=4KiB", "worker.wait=event", "device.name=rxe0:1"));
}

TEST(PerfOptions, DoubleSizesAndEndWhereTheRangeEnds) {
  EXPECT_THAT(parse_size_range("1:8"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(parse_size_range("3:1KiB"), ElementsAre(3, 6, 12, 24, 48, 96, 192, 384, 768, 1024));
  EXPECT_THAT(parse_size_range("5:5"), ElementsAre(5));
}

TEST(PerfOptions, RefuseWithTheReason) {
  EXPECT_THAT(refusal({"latency"}), HasSubstr("there is no test 'latency'; there are lat, bw"));
  EXPECT_THAT(refusal({"--sizes", "8,big"}), HasSubstr("'big'"));
  EXPECT_THAT(refusal({"--sizes", "17GiB"}), HasSubstr("'17GiB' is above 16GiB"));
  EXPECT_THAT(refusal({"--size-range", "4MiB:1"}), HasSubstr("not end below its beginning"));
  EXPECT_THAT(refusal({"--size-range", "4MiB"}), HasSubstr("not FROM:TO"));
  EXPECT_THAT(refusal({"--duration", "200"}), HasSubstr("200"));
  EXPECT_THAT(refusal({"--duration", "2min"}), HasSubstr("not between 1ms and"));
  EXPECT_THAT(refusal({"--iterations", "0"}), HasSubstr("--iterations"));
  EXPECT_THAT(refusal({"--window", "5000"}), HasSubstr("--window"));
  EXPECT_THAT(refusal({"--wait", "never"}), HasSubstr("--wait"));
  EXPECT_THAT(refusal({"--cores", "1"}), HasSubstr("both sides need one"));
  EXPECT_THAT(refusal({"--listen", ":1", "--cores", "1,2"}), HasSubstr("this side needs one"));
  EXPECT_THAT(refusal({"--listen", ":1", "--connect", "a:1"}), HasSubstr("excludes"));
  EXPECT_THAT(refusal({"--listen", ":1", "--sizes", "8"}), HasSubstr("--sizes with --listen"));
  EXPECT_THAT(refusal({"--listen", ":1", "lat"}), HasSubstr("TEST with --listen"));
  EXPECT_THAT(refusal({"--listen", ":1", "--json"}), HasSubstr("--json with --listen"));
  EXPECT_THAT(refusal({"--json", "--csv"}), HasSubstr("excludes"));
  EXPECT_THAT(refusal({"--sizes", "8", "--size-range", "1:2"}), HasSubstr("excludes"));
  EXPECT_THAT(refusal({"--bogus"}), HasSubstr("--bogus"));
}

TEST(PerfPlan, GivesLargeCheckedMessagesASmallerWindow) {
  const auto plan = make_plan(parse({"bw", "--sizes", "4MiB,1GiB", "--window", "256", "--check"}));
  EXPECT_EQ(plan[0].window, 64U);
  EXPECT_EQ(plan[1].window, 1U);
}

TEST(PerfPlan, CountsWholeWindowsWhereATestWorksInWindows) {
  EXPECT_EQ(whole_iterations({TestKind::bw, 8, 64, false}, 65), 128U);
  EXPECT_EQ(whole_iterations({TestKind::rate, 8, 64, false}, 65), 65U);
}

TEST(PerfPlan, FitsIterationsIntoADurationAndItsBounds) {
  const Point point{TestKind::lat, 8, 1, false};
  EXPECT_EQ(iterations_for(point, std::chrono::milliseconds(1), 100, 100'000), 1000U);
  EXPECT_EQ(iterations_for(point, std::chrono::milliseconds(1), 1, 5e9), 1U);
  EXPECT_EQ(iterations_for(point, std::chrono::seconds(60), 1000, 1), max_iterations);
}

TEST(PerfPlan, KeepsCheckedMessagesApart) {
  const Slots apart({TestKind::bw, 100, 4, true});
  EXPECT_EQ(apart.bytes(), 4U * 128);
  EXPECT_EQ(apart.offset(5), 128U);
  const Slots together({TestKind::bw, 100, 4, false});
  EXPECT_EQ(together.offset(5), 0U);
  EXPECT_EQ(Slots({TestKind::lat, 0, 1, false}).bytes(), 64U) << "there is no region of no bytes";
}

}  // namespace
}  // namespace verbatim::perf
