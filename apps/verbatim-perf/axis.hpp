// A logarithmic axis of a drawing: where a value lies, and which values deserve a label.
#pragma once

#include <string>
#include <vector>

namespace verbatim::perf {

struct Tick {
  double value = 0;
  std::string label;
};

class LogAxis {
 public:
  // From `low` to `high`, both positive, drawn from `first` to `last`; low == high lies in the middle.
  LogAxis(double low, double high, double first, double last);
  [[nodiscard]] double at(double value) const;

 private:
  double log_low_;
  double log_high_;
  double first_;
  double last_;
};

inline constexpr std::size_t max_ticks = 12;

// Powers of two within [low, high], every one or every n-th, labelled as sizes.
[[nodiscard]] std::vector<Tick> size_ticks(double low, double high);

// The ends of an axis that has room for [low, high], and its ticks: 1, 2, 5, 10, 20 …, or fewer where that is too many.
struct DecimalScale {
  double low = 0;
  double high = 0;
  std::vector<Tick> ticks;
};
[[nodiscard]] DecimalScale decimal_scale(double low, double high);

}  // namespace verbatim::perf
