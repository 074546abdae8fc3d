// What verbatim-perf writes of its results.
#include "verbatim-perf/output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace verbatim::perf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PointResult latency_result() {
  PointResult result;
  result.point = {TestKind::lat, 8, 1, false};
  result.messages = 2000;
  result.operations = 2000;
  result.elapsed_ns = 400'000;
  result.latency_ns = {.count = 1000, .mean = 205, .p50 = 200, .p90 = 220, .p99 = 300, .p999 = 900, .max = 5000};
  result.here = {.cpu_ns = 400'000, .posts = 1000, .signalled = 31, .receive_posts = 62, .pinned_bytes = 1'500'000};
  result.there = {.cpu_ns = 300'000, .posts = 1000, .signalled = 32, .receive_posts = 63, .rnr_naks = 1};
  result.yardstick = Yardstick{.handover_ns = 160, .memcpy_bytes_per_second = 1e9};
  return result;
}

PointResult bandwidth_result(std::uint64_t bytes) {
  PointResult result;
  result.point = {TestKind::bw, bytes, 64, false};
  result.messages = 1000;
  result.operations = 1000;
  result.elapsed_ns = 1e8;  // 10'000 messages per second
  result.yardstick = Yardstick{.handover_ns = 160, .memcpy_bytes_per_second = 2e10};
  return result;
}

Results results_of(std::vector<PointResult> points) {
  return {.conditions = {.device = "soft0:1", .place = "this host, cores 0 and 1", .wait = "poll", .check = false},
          .points = std::move(points)};
}

// The line of a text that holds `part`.
std::string line_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos) return line;
  }
  return "no line has " + part;
}

TEST(PerfResult, DividesByWhatItSays) {
  const PointResult latency = latency_result();
  EXPECT_DOUBLE_EQ(latency.per_operation(&SideUse::posts), 1);
  EXPECT_DOUBLE_EQ(latency.signalled_share(), 63.0 / 2000);
  EXPECT_DOUBLE_EQ(*latency.times_handover(), 1.25);
  EXPECT_FALSE(latency.share_of_memcpy());
  const PointResult bandwidth = bandwidth_result(1 << 20);
  EXPECT_DOUBLE_EQ(bandwidth.bytes_per_second(), 10'000.0 * (1 << 20));
  EXPECT_DOUBLE_EQ(*bandwidth.share_of_memcpy(), 10'000.0 * (1 << 20) / 2e10);
  EXPECT_FALSE(bandwidth.times_handover());
}

TEST(PerfTable, HasABlockPerTestAndALinePerSize) {
  const std::string text =
      to_table(results_of({latency_result(), bandwidth_result(1 << 20), bandwidth_result(4 << 20)}));
  EXPECT_THAT(line_with(text, "soft0"), AllOf(HasSubstr("cores 0 and 1"), HasSubstr("poll")));
  EXPECT_THAT(line_with(text, "0.200"), AllOf(HasSubstr("5.000"), HasSubstr("1.250"), HasSubstr("3.1 %")));
  EXPECT_THAT(line_with(text, "1MiB  "), AllOf(HasSubstr("10486"), HasSubstr("0.524")));
  EXPECT_THAT(line_with(text, "RNR NAKs"), AllOf(HasSubstr("RNR NAKs 1,"), HasSubstr("1.5 MB here")));
  EXPECT_THAT(text, HasSubstr("a cache line handed to the other core 160 ns, memcpy of 1MiB 20.0 GB/s"));
  EXPECT_THAT(text, Not(HasSubstr("Every byte")));
}

TEST(PerfTable, SaysWhatWasCheckedAndWhatWasNotMeasured) {
  Results results = results_of({latency_result()});
  results.conditions.check = true;
  results.points[0].yardstick.reset();
  const std::string text = to_table(results);
  EXPECT_THAT(text, HasSubstr("Every byte of 2000 messages was right"));
  EXPECT_THAT(text, Not(HasSubstr("This machine")));
}

TEST(PerfJson, NamesEveryValueAndLeavesNothingOut) {
  const auto json = nlohmann::json::parse(to_json(results_of({latency_result(), bandwidth_result(1 << 20)})));
  EXPECT_EQ(json["device"], "soft0:1");
  const auto& latency = json["points"][0];
  EXPECT_EQ(latency["test"], "lat");
  EXPECT_EQ(latency["bytes"], 8);
  EXPECT_EQ(latency["latency_p50_ns"], 200.0);
  EXPECT_EQ(latency["latency_p99_9_ns"], 900.0);
  EXPECT_EQ(latency["latency_count"], 1000);
  EXPECT_TRUE(latency["megabytes_per_second"].is_null());
  EXPECT_EQ(latency["cpu_ns_per_message"], 200.0);
  EXPECT_EQ(latency["peer_cpu_ns_per_message"], 150.0);
  EXPECT_EQ(latency["rnr_naks"], 1);
  EXPECT_EQ(latency["latency_per_handover"], 1.25);
  const auto& bandwidth = json["points"][1];
  EXPECT_TRUE(bandwidth["latency_p50_ns"].is_null());
  EXPECT_EQ(bandwidth["million_messages_per_second"], 0.01);
  EXPECT_EQ(bandwidth.size(), latency.size());
}

TEST(PerfCsv, HasAsManyCellsInEachLine) {
  std::istringstream lines(to_csv(results_of({latency_result(), bandwidth_result(64)})));
  std::vector<std::ptrdiff_t> commas;
  for (std::string line; std::getline(lines, line);) commas.push_back(std::count(line.begin(), line.end(), ','));
  ASSERT_EQ(commas.size(), 3U);
  EXPECT_EQ(commas[0], commas[1]);
  EXPECT_EQ(commas[0], commas[2]);
}

TEST(PerfPlot, DrawsAPanelPerFigureThatWasMeasured) {
  const std::string both = to_svg(results_of({latency_result(), bandwidth_result(64), bandwidth_result(1 << 20)}));
  EXPECT_THAT(both, AllOf(HasSubstr("Latency, µs"), HasSubstr("Bandwidth, MB/s"), HasSubstr(">lat, p50<"),
                          HasSubstr(">memcpy, one core<"), HasSubstr("message size, bytes")));
  EXPECT_THAT(to_svg(results_of({latency_result()})), Not(HasSubstr("Bandwidth")));
}

TEST(PerfPlot, EscapesWhatADeviceMayBeCalled) {
  Results results = results_of({latency_result()});
  results.conditions.device = "a<b>&c";
  EXPECT_THAT(to_svg(results), HasSubstr("a&lt;b&gt;&amp;c"));
}

TEST(PerfPlot, LeavesOutMessagesOfNoBytes) {
  PointResult empty = latency_result();
  empty.point.bytes = 0;
  EXPECT_THAT(to_svg(results_of({empty})), Not(HasSubstr("circle")));
}

}  // namespace
}  // namespace verbatim::perf
