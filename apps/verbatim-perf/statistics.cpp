#include "statistics.hpp"

#include <algorithm>
#include <numeric>

namespace verbatim::perf {
namespace {

// Per mille, so that the rank is exact.
double percentile(const std::vector<std::uint64_t>& sorted, std::uint64_t per_mille, double scale) {
  const std::uint64_t rank = (sorted.size() * per_mille + 999) / 1000;
  return static_cast<double>(sorted[rank - 1]) * scale;
}

}  // namespace

Distribution distribution(std::vector<std::uint64_t>& samples, double scale) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto sum = static_cast<double>(std::accumulate(samples.begin(), samples.end(), std::uint64_t{0}));
  return {.count = samples.size(),
          .mean = sum * scale / static_cast<double>(samples.size()),
          .p50 = percentile(samples, 500, scale),
          .p90 = percentile(samples, 900, scale),
          .p99 = percentile(samples, 990, scale),
          .p999 = percentile(samples, 999, scale),
          .max = static_cast<double>(samples.back()) * scale};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace verbatim::perf
