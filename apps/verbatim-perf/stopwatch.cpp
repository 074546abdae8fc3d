#include "stopwatch.hpp"

#include <chrono>

namespace verbatim::perf {
namespace {

double measure_ns_per_tick() {
  constexpr std::chrono::milliseconds long_enough{10};
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const std::uint64_t first = ticks();
  auto now = start;
  while (now - start < long_enough) now = Clock::now();
  const std::uint64_t last = ticks();
  const std::chrono::duration<double, std::nano> elapsed = now - start;
  return elapsed.count() / static_cast<double>(last - first);
}

}  // namespace

double ns_per_tick() {
  static const double measured = measure_ns_per_tick();
  return measured;
}

}  // namespace verbatim::perf
