// What is said of many time stamps.
#pragma once

#include <cstdint>
#include <vector>

namespace verbatim::perf {

struct Distribution {
  std::uint64_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

// Of `samples` times `scale`. A percentile is a sample: the smallest that no fewer than so many per cent don't exceed
// (nearest rank). Reorders them. All zero for none.
[[nodiscard]] Distribution distribution(std::vector<std::uint64_t>& samples, double scale);

// The middle one, the upper of two. `values` is not empty.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace verbatim::perf
