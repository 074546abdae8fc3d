#include "axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.hpp"

namespace verbatim::perf {
namespace {

// The n-th of 1, 2, 5, 10, 20 …; below zero 0.5, 0.2, 0.1 …
double step_value(int step) {
  constexpr std::array<double, 3> in_decade{1, 2, 5};
  const int decade = static_cast<int>(std::floor(step / 3.0));
  return in_decade[static_cast<std::size_t>(step - decade * 3)] * std::pow(10.0, decade);
}

// The last step that is not above `value`.
int step_below(double value) {
  constexpr double rounding = 1 + 1e-9;
  int step = 3 * static_cast<int>(std::floor(std::log10(value))) - 1;
  while (step_value(step + 1) <= value * rounding) ++step;
  return step;
}

// Every power of two, or every n-th, whichever n leaves few enough; counted from 1 byte, so that KiB and MiB stay in.
int size_tick_interval(int first, int last) {
  for (const int interval : {1, 2, 5}) {
    if (static_cast<std::size_t>((last - first) / interval) < max_ticks) return interval;
  }
  return 10;
}

}  // namespace

LogAxis::LogAxis(double low, double high, double first, double last)
    : log_low_(std::log(low)), log_high_(std::log(high)), first_(first), last_(last) {}

double LogAxis::at(double value) const {
  const double share = log_high_ > log_low_ ? (std::log(value) - log_low_) / (log_high_ - log_low_) : 0.5;
  return first_ + share * (last_ - first_);
}

std::vector<Tick> size_ticks(double low, double high) {
  const int first = static_cast<int>(std::ceil(std::log2(low)));
  const int last = static_cast<int>(std::floor(std::log2(high)));
  const int interval = size_tick_interval(first, last);
  std::vector<Tick> ticks;
  for (int power = first; power <= last; ++power) {
    if (power % interval != 0) continue;
    const double bytes = std::exp2(power);
    ticks.push_back({bytes, format_size(static_cast<std::uint64_t>(bytes))});
  }
  return ticks;
}

DecimalScale decimal_scale(double low, double high) {
  const int first = step_below(low);
  int last = step_below(high);
  constexpr double rounding = 1 + 1e-9;
  if (last == first || step_value(last) * rounding < high) ++last;
  const bool decades_only = static_cast<std::size_t>(last - first) >= max_ticks;
  DecimalScale scale{step_value(first), step_value(last), {}};
  for (int step = first; step <= last; ++step) {
    if (decades_only && step % 3 != 0) continue;
    scale.ticks.push_back({step_value(step), fmt::format("{:.6g}", step_value(step))});
  }
  return scale;
}

}  // namespace verbatim::perf
