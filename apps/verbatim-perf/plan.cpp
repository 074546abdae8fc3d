#include "plan.hpp"

#include <algorithm>
#include <bit>

namespace verbatim::perf {
namespace {

// Of all slots when they are checked; larger messages get a smaller window then.
constexpr std::uint64_t max_checked_bytes = 256ULL << 20;
constexpr std::uint64_t cache_line_bytes = 64;

std::uint32_t window_of(const Options& options, TestKind test, std::uint64_t bytes) {
  if (traits(test).figure == Figure::latency) return 1;
  if (!options.check || bytes == 0) return options.window;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(max_checked_bytes / bytes, 1, options.window));
}

bool in_windows(const Point& point) {
  return point.test == TestKind::bw || point.test == TestKind::bibw || (point.test == TestKind::put_bw && point.check);
}

}  // namespace

std::vector<Point> make_plan(const Options& options) {
  std::vector<Point> plan;
  for (const TestKind test : options.tests) {
    for (const std::uint64_t bytes : options.sizes.empty() ? traits(test).default_sizes : options.sizes) {
      plan.push_back({test, bytes, window_of(options, test, bytes), options.check});
    }
  }
  return plan;
}

std::uint64_t whole_iterations(const Point& point, std::uint64_t wanted) {
  if (!in_windows(point)) return wanted;
  return (wanted + point.window - 1) / point.window * point.window;
}

std::uint64_t iterations_for(const Point& point, Duration duration, std::uint64_t iterations, double elapsed_ns) {
  const double each_ns = std::max(elapsed_ns, 1.0) / static_cast<double>(iterations);
  const double fitting = std::clamp(static_cast<double>(duration.count()) / each_ns, 1.0, double{max_iterations});
  return whole_iterations(point, static_cast<std::uint64_t>(fitting));
}

Slots::Slots(const Point& point)
    : count(std::bit_ceil(std::uint64_t{point.check ? point.window : 1})),
      stride(std::max<std::uint64_t>((point.bytes + cache_line_bytes - 1) / cache_line_bytes, 1) * cache_line_bytes) {}

}  // namespace verbatim::perf
