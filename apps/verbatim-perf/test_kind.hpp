// What can be measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::perf {

enum class TestKind : std::uint8_t { lat, bw, bibw, rate, put_lat, put_bw, get_lat, get_bw };

enum class Figure : std::uint8_t { latency, bandwidth };

struct TestTraits {
  TestKind kind;
  std::string_view name;
  Figure figure;
  std::string_view definition;
  std::vector<std::uint64_t> default_sizes;
};

// In the order of the enum.
[[nodiscard]] const std::vector<TestTraits>& all_tests();
[[nodiscard]] const TestTraits& traits(TestKind kind);
[[nodiscard]] std::optional<TestKind> test_named(std::string_view name);
[[nodiscard]] std::string test_names();  // "lat, bw, …"

}  // namespace verbatim::perf
