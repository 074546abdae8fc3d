// Time as protocol code sees it: a value handed in, or asked of a Clock that a simulator may own.
#pragma once

#include <chrono>

namespace verbatim {

using Duration = std::chrono::nanoseconds;

// Nanoseconds since an arbitrary start. A type of its own, so that no wall clock can slip in.
struct TimeBase {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<TimeBase>;
  static constexpr bool is_steady = true;
};
using Time = TimeBase::time_point;

inline constexpr Time never = Time::max();

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const = 0;
};

// A clock that stands until it is told to go on: tests and the simulator.
class VirtualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return now_; }
  void advance_to(Time time) {
    if (time > now_) now_ = time;
  }
  void advance(Duration by) { now_ += by; }

 private:
  Time now_{};
};

}  // namespace verbatim
