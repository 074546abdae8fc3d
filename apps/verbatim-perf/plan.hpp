// What will be measured, point by point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "options.hpp"
#include "test_kind.hpp"

namespace verbatim::perf {

// One test at one size.
struct Point {
  TestKind test = TestKind::lat;
  std::uint64_t bytes = 0;
  std::uint32_t window = 1;
  bool check = false;
  friend bool operator==(const Point&, const Point&) = default;
};

[[nodiscard]] std::vector<Point> make_plan(const Options& options);

// Iterations are messages, or round trips for latencies.
//
// A count that the point's test can run: whole windows where it works in windows.
[[nodiscard]] std::uint64_t whole_iterations(const Point& point, std::uint64_t wanted);
// How many fit into `duration`, going by a run of `iterations` that took `elapsed_ns`. At least one, at most
// max_iterations, rounded up to whole windows.
[[nodiscard]] std::uint64_t iterations_for(const Point& point, Duration duration, std::uint64_t iterations,
                                           double elapsed_ns);

// Where a side's messages lie: each message under way has a slot of its own when every byte is looked at, and all have
// the same when not, as in the programs that this one is compared with.
struct Slots {
  explicit Slots(const Point& point);
  [[nodiscard]] std::uint64_t offset(std::uint64_t message) const { return (message & (count - 1)) * stride; }
  [[nodiscard]] std::uint64_t bytes() const { return count * stride; }

  std::uint64_t count;  // a power of two
  std::uint64_t stride;
};

}  // namespace verbatim::perf
