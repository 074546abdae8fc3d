#include "test_kind.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace verbatim::perf {
namespace {

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;

}  // namespace

const std::vector<TestTraits>& all_tests() {
  using enum Figure;
  static const std::vector<std::uint64_t> latency_sizes{8, 64, 1 * KiB, 4 * KiB, 64 * KiB, 1 * MiB};
  static const std::vector<std::uint64_t> bandwidth_sizes{1 * KiB, 4 * KiB, 64 * KiB, 1 * MiB, 4 * MiB};
  static const std::vector<TestTraits> tests{
      {TestKind::lat, "lat", latency, "tagged message to and fro, half a round trip", latency_sizes},
      {TestKind::bw, "bw", bandwidth, "a window of tagged messages, then one reply", bandwidth_sizes},
      {TestKind::bibw, "bibw", bandwidth, "windows of tagged messages both ways at once, bytes of both",
       bandwidth_sizes},
      {TestKind::rate,
       "rate",
       bandwidth,
       "tagged messages without a pause, first post to the reply to the last",
       {8, 64}},
      {TestKind::put_lat, "put-lat", latency, "put with a notice to and fro, half a round trip", latency_sizes},
      {TestKind::put_bw, "put-bw", bandwidth, "puts, a window under way, until the peer's memory has the last",
       bandwidth_sizes},
      {TestKind::get_lat, "get-lat", latency, "one get, from the call until the data is there", latency_sizes},
      {TestKind::get_bw, "get-bw", bandwidth, "gets, a window under way, until the last one's data is there",
       bandwidth_sizes},
  };
  return tests;
}

const TestTraits& traits(TestKind kind) {
  return all_tests().at(static_cast<std::size_t>(kind));
}

std::optional<TestKind> test_named(std::string_view name) {
  const auto& tests = all_tests();
  const auto found =
      std::find_if(tests.begin(), tests.end(), [&](const TestTraits& test) { return test.name == name; });
  if (found == tests.end()) return std::nullopt;
  return found->kind;
}

std::string test_names() {
  std::vector<std::string_view> names;
  for (const TestTraits& test : all_tests()) names.push_back(test.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace verbatim::perf
