// Statistics, patterns and axes of verbatim-perf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "verbatim-perf/axis.hpp"
#include "verbatim-perf/pattern.hpp"
#include "verbatim-perf/statistics.hpp"

namespace verbatim::perf {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PerfStatistics, PercentilesAreSamplesOfTheirRank) {
  std::vector<std::uint64_t> samples(1000);
  std::iota(samples.rbegin(), samples.rend(), std::uint64_t{1});
  const Distribution found = distribution(samples, 0.5);
  EXPECT_EQ(found.count, 1000U);
  EXPECT_DOUBLE_EQ(found.mean, 250.25);
  EXPECT_DOUBLE_EQ(found.p50, 250);
  EXPECT_DOUBLE_EQ(found.p90, 450);
  EXPECT_DOUBLE_EQ(found.p99, 495);
  EXPECT_DOUBLE_EQ(found.p999, 499.5);
  EXPECT_DOUBLE_EQ(found.max, 500);
}

TEST(PerfStatistics, OneSampleIsEveryPercentileAndNoneIsNothing) {
  std::vector<std::uint64_t> one{7};
  EXPECT_DOUBLE_EQ(distribution(one, 1).p50, 7);
  EXPECT_DOUBLE_EQ(distribution(one, 1).p999, 7);
  std::vector<std::uint64_t> none;
  EXPECT_EQ(distribution(none, 1).count, 0U);
}

TEST(PerfStatistics, MedianIsTheMiddleOne) {
  EXPECT_DOUBLE_EQ(median({9, 1, 5}), 5);
  EXPECT_DOUBLE_EQ(median({9, 1}), 9);
}

TEST(PerfPattern, IsFoundWholeAtEveryLength) {
  for (std::uint64_t bytes = 0; bytes <= 40; ++bytes) {
    std::vector<std::byte> data(bytes);
    fill_pattern(data.data(), bytes, 3);
    EXPECT_FALSE(find_mismatch(data.data(), bytes, 3)) << bytes;
  }
}

TEST(PerfPattern, NamesTheFirstWrongByte) {
  std::vector<std::byte> data(100);
  for (const std::size_t wrong : {0U, 7U, 8U, 63U, 99U}) {
    fill_pattern(data.data(), data.size(), 17);
    data[wrong] ^= std::byte{0x10};
    const auto mismatch = find_mismatch(data.data(), data.size(), 17);
    ASSERT_TRUE(mismatch);
    EXPECT_EQ(mismatch->offset, wrong);
    EXPECT_EQ(mismatch->expected ^ mismatch->found, 0x10);
    EXPECT_THAT(to_string(*mismatch), AllOf(HasSubstr("message 17"), HasSubstr("offset " + std::to_string(wrong))));
  }
}

TEST(PerfPattern, TellsMessagesPlacesAndSpoiledBytesApart) {
  std::vector<std::byte> data(64);
  fill_pattern(data.data(), data.size(), 1);
  EXPECT_TRUE(find_mismatch(data.data(), data.size(), 2)) << "a message for another";
  EXPECT_TRUE(find_mismatch(data.data() + 8, data.size() - 8, 1)) << "shifted by a word";
  EXPECT_TRUE(find_mismatch(data.data() + 1, data.size() - 1, 1)) << "shifted by a byte";
  spoil_pattern(data.data(), data.size(), 1);
  for (std::size_t at = 0; at < data.size(); at += 8) {
    EXPECT_EQ(find_mismatch(data.data(), at + 1, 1)->offset, 0U);
  }
}

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> texts;
  for (const Tick& tick : ticks) texts.push_back(tick.label);
  return texts;
}

TEST(PerfAxis, PutsValuesWhereTheirLogarithmIs) {
  const LogAxis axis(1, 100, 10, 30);
  EXPECT_DOUBLE_EQ(axis.at(1), 10);
  EXPECT_DOUBLE_EQ(axis.at(10), 20);
  EXPECT_DOUBLE_EQ(axis.at(100), 30);
  EXPECT_DOUBLE_EQ(LogAxis(8, 8, 10, 30).at(8), 20) << "one value lies in the middle";
}

TEST(PerfAxis, LabelsSizesAsPowersOfTwo) {
  EXPECT_THAT(labels(size_ticks(8, 64)), ElementsAre("8", "16", "32", "64"));
  EXPECT_THAT(labels(size_ticks(1, 4 << 20)),
              ElementsAre("1", "4", "16", "64", "256", "1KiB", "4KiB", "16KiB", "64KiB", "256KiB", "1MiB", "4MiB"));
  EXPECT_THAT(labels(size_ticks(100, 120)), ElementsAre());
}

TEST(PerfAxis, HasRoomForItsValuesAndFewLabels) {
  const DecimalScale narrow = decimal_scale(0.17, 3.2);
  EXPECT_THAT(labels(narrow.ticks), ElementsAre("0.1", "0.2", "0.5", "1", "2", "5"));
  const DecimalScale one = decimal_scale(5, 5);
  EXPECT_LT(one.low, one.high);
  EXPECT_LE(one.low, 5);
  const DecimalScale wide = decimal_scale(3, 40'000);
  EXPECT_LE(wide.low, 3);
  EXPECT_GE(wide.high, 40'000);
  EXPECT_LE(wide.ticks.size(), max_ticks + 1);
}

}  // namespace
}  // namespace verbatim::perf
